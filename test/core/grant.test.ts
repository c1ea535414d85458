/** The rules of who holds, against a naive reading of what they promise, on random queues. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Entry } from "../../src/core/backend.ts";
import { counted, exclusive, ruleOf, shared, split } from "../../src/core/grant.ts";

const owner = { client: "c", host: "h", pid: 1 };

function queueOf(parts: readonly { write: boolean; weight: number; permits?: number }[]): Entry[] {
  return parts.map(({ write, weight, permits }, index) => ({
    id: `e${index}`,
    owner,
    mode: write ? "write" : "read",
    weight,
    permits,
    seq: BigInt(index + 1),
    expiresInMs: 1_000,
    ageMs: 0,
  }));
}

const locks = fc.array(
  fc.boolean().map((write) => ({ write, weight: 1 })),
  { maxLength: 12 },
);
const permits = fc.array(
  fc.record({
    write: fc.constant(false),
    weight: fc.integer({ min: 1, max: 5 }),
    permits: fc.integer({ min: 1, max: 8 }),
  }),
  { maxLength: 12 },
);
const queues = fc.oneof(locks, permits).map(queueOf);

/** Who holds, said as plainly as possible. */
function naively(queue: readonly Entry[]): string[] {
  return queue
    .filter((entry, index) => {
      const ahead = queue.slice(0, index);
      if (entry.permits !== undefined) {
        return ahead.reduce((sum, { weight }) => sum + weight, entry.weight) <= entry.permits;
      }
      return entry.mode === "write" ? ahead.length === 0 : ahead.every(({ mode }) => mode === "read");
    })
    .map(({ id }) => id);
}

const bySeq = (a: Entry, b: Entry): number => Number(a.seq - b.seq);
const idsOf = (entries: readonly Entry[]): string[] => entries.map(({ id }) => id);

describe("who holds", () => {
  it("agrees with the naive reading", () => {
    fc.assert(
      fc.property(queues, (queue) => {
        expect(idsOf(split(queue).held)).toEqual(naively(queue));
      }),
    );
  });

  it("splits a queue in two without loss, each part in order", () => {
    fc.assert(
      fc.property(queues, (queue) => {
        const { held, pending } = split(queue);
        expect([...held, ...pending].toSorted(bySeq)).toEqual(queue);
        expect(held).toEqual(held.toSorted(bySeq));
        expect(pending).toEqual(pending.toSorted(bySeq));
      }),
    );
  });

  it("never loses a grant by the removal of another entry", () => {
    fc.assert(
      fc.property(queues, fc.nat(), (queue, at) => {
        const gone = queue[at % Math.max(1, queue.length)]?.id;
        const before = naively(queue).filter((id) => id !== gone);
        const after = idsOf(split(queue.filter(({ id }) => id !== gone)).held);
        expect(after).toEqual(expect.arrayContaining(before));
      }),
    );
  });

  it("never loses a grant by an entry that joins", () => {
    fc.assert(
      fc.property(queues, fc.boolean(), (queue, write) => {
        const [joined] = queueOf([{ write, weight: 1 }]);
        if (joined === undefined) return;
        const after = idsOf(split([...queue, { ...joined, id: "new" }]).held);
        expect(after.filter((id) => id !== "new")).toEqual(naively(queue));
      }),
    );
  });

  it("is one writer, or readers only", () => {
    fc.assert(
      fc.property(locks.map(queueOf), (queue) => {
        const { held } = split(queue);
        const writers = held.filter(({ mode }) => mode === "write").length;
        expect(writers === 0 || held.length === 1).toBe(true);
      }),
    );
  });

  it("is somebody, unless the queue of a lock is empty", () => {
    fc.assert(
      fc.property(locks.map(queueOf), (queue) => {
        expect(split(queue).held.length > 0).toBe(queue.length > 0);
      }),
    );
  });
});

describe("the rule of an entry", () => {
  it.each([
    [{ mode: "write", weight: 1 }, exclusive],
    [{ mode: "read", weight: 1 }, shared],
    [{ mode: "read", weight: 1, permits: 3 }, counted],
    [{ mode: "write", weight: 1, permits: 3 }, counted],
  ] as const)("of %o is found", (entry, rule) => {
    expect(ruleOf(entry)).toBe(rule);
  });

  it("says whom to watch: the nearest, the nearest writer, anybody", () => {
    const [writer = null, reader = null] = queueOf([
      { write: true, weight: 1 },
      { write: false, weight: 1 },
    ]);
    const ahead = { count: 2, weight: 2, nearest: reader, nearestWriter: writer };
    expect([exclusive, shared, counted].map((rule) => rule.blocker(ahead))).toEqual([reader, writer, null]);
  });
});
