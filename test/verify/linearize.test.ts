/** The search agrees with the enumeration of all orders, on tiny sets of ops. */
import {
  array,
  assert,
  boolean,
  constantFrom,
  integer,
  option,
  property,
  record,
  type Arbitrary,
} from "fast-check";
import { describe, expect, it } from "vitest";
import { linearize, type Model, type TimedOp } from "../../src/verify/linearize.ts";
import { lockModel, type LockOp, type ModelEntry } from "../../src/verify/lock-model.ts";

/** Whether some order of the ops works, found by trying them all. Ops without an end may be left out. */
function isLinearizable<State, Op>(
  step: (state: State, op: Op) => readonly State[],
  state: State,
  ops: readonly TimedOp<Op>[],
): boolean {
  if (ops.every(({ end }) => end === Infinity)) return true;
  return ops.some((first) => {
    const rest = ops.filter((op) => op !== first);
    if (rest.some(({ end }) => end < first.call)) return false;
    return step(state, first.op).some((after) => isLinearizable(step, after, rest));
  });
}

const interval = {
  call: integer({ min: 0, max: 12 }),
  length: option(integer({ min: 0, max: 6 }), { freq: 4 }),
};

/** Ops at distinct moments, as positions in a history are. */
function spread<Op>(items: readonly { op: Op; call: number; length: number | null }[]): TimedOp<Op>[] {
  return items.map(({ op, call, length }, at) => ({
    op,
    call: call + at / 100,
    end: length === null ? Infinity : call + length + 0.5 + at / 100,
  }));
}

describe("a register", () => {
  interface RegisterOp {
    readonly write: boolean;
    readonly value: number;
  }
  const register: Model<{ readonly value: number }, RegisterOp> = {
    initial: { value: 0 },
    step: (state, { write, value }) => (write ? [{ value }] : state.value === value ? [state] : []),
    key: ({ value }) => `${value}`,
  };
  const ops = array(
    record({ op: record({ write: boolean(), value: integer({ min: 0, max: 2 }) }), ...interval }),
    { maxLength: 6 },
  );

  it("is judged as by trying all orders", () => {
    const seen = new Set<string>();
    assert(
      property(ops, (items) => {
        const timed = spread(items);
        const expected = isLinearizable((state, op) => register.step(state, op, 0), register.initial, timed);
        const { verdict } = linearize(register, timed);
        expect(verdict).toBe(expected ? "valid" : "invalid");
        seen.add(verdict);
      }),
      { numRuns: 3000 },
    );
    expect(seen.size).toBe(2);
  });

  it("gives an order that explains everything", () => {
    assert(
      property(ops, (items) => {
        const timed = spread(items);
        const { verdict, order, stuck } = linearize(register, timed);
        let state = register.initial;
        for (const [at, { op, call }] of order.entries()) {
          const [after] = register.step(state, op, 0);
          expect(after).toBeDefined();
          state = after ?? state;
          for (const later of order.slice(at + 1)) expect(later.end).toBeGreaterThanOrEqual(call);
        }
        const ended = timed.filter(({ end }) => end !== Infinity);
        if (verdict === "valid") expect(order).toEqual(expect.arrayContaining(ended));
        else expect(order).not.toContain(stuck);
      }),
      { numRuns: 1000 },
    );
  });

  it("says unknown when the limit of steps is reached", () => {
    const timed = [...Array(12).keys()].map((at): TimedOp<RegisterOp> => {
      return { op: { write: true, value: at }, call: at, end: 100 };
    });
    const unread: TimedOp<RegisterOp> = { op: { write: false, value: 99 }, call: 200, end: 201 };
    expect(linearize(register, [...timed, unread], 500)).toMatchObject({ verdict: "unknown" });
    expect(linearize(register, [...timed, unread])).toMatchObject({ verdict: "invalid", stuck: unread });
  });

  it("keeps to an order that is known", () => {
    const one: TimedOp<RegisterOp> = { op: { write: true, value: 1 }, call: 0, end: 10 };
    const two: TimedOp<RegisterOp> = { op: { write: true, value: 2 }, call: 1, end: 11 };
    const read: TimedOp<RegisterOp> = { op: { write: false, value: 1 }, call: 20, end: 21 };
    expect(linearize(register, [one, two, read])).toMatchObject({
      verdict: "valid",
      order: [two, one, read],
    });
    expect(linearize(register, [one, { ...two, after: one }, read])).toMatchObject({
      verdict: "invalid",
      stuck: read,
    });
  });

  it("takes a long history in its stride", () => {
    const timed = [...Array(50_000).keys()].map((at): TimedOp<RegisterOp> => {
      const value = Math.floor(at / 2);
      return { op: { write: at % 2 === 0, value }, call: at * 2, end: at * 2 + 3 };
    });
    expect(linearize(register, timed).verdict).toBe("valid");
  });
});

describe("a lock", () => {
  /** The lock's rules with expiry as an op of its own, which the model leaves hidden. */
  type PlainOp = LockOp | { readonly what: "expire"; readonly entry: ModelEntry };
  type Queue = readonly ModelEntry[];

  const holds = (queue: Queue, entry: ModelEntry): boolean => {
    const ahead = queue.slice(0, queue.indexOf(entry));
    if (entry.kind === "exclusive") return ahead.length === 0;
    if (entry.kind === "shared") return ahead.every(({ kind }) => kind === "shared");
    const weight = ahead.reduce((sum, other) => sum + other.weight, entry.weight);
    return weight <= entry.permits && ahead.every(({ kind }) => kind === "counted");
  };
  const plainStep = (queue: Queue, op: PlainOp): Queue[] => {
    switch (op.what) {
      case "append":
        return [[...queue, op.entry]];
      case "grant":
        return queue.includes(op.entry) && holds(queue, op.entry) ? [queue] : [];
      case "take":
        return holds([...queue, op.entry], op.entry) ? [[...queue, op.entry]] : [];
      case "refuse":
        return holds([...queue, op.entry], op.entry) ? [] : [queue];
      case "list": {
        const holders = queue.filter((entry) => holds(queue, entry));
        const waiters = queue.filter((entry) => !holds(queue, entry));
        return same(holders, op.holders) && same(waiters, op.waiters) ? [queue] : [];
      }
      case "nonsense":
        return [];
      default:
        return queue.includes(op.entry) ? [queue.filter((entry) => entry !== op.entry)] : [];
    }
  };
  const same = (a: Queue, b: ReadonlySet<ModelEntry>): boolean =>
    a.length === b.size && a.every((entry) => b.has(entry));

  const kinds: Arbitrary<ModelEntry["kind"]> = constantFrom("exclusive", "exclusive", "shared", "counted");
  const entries = array(
    record({
      kind: kinds,
      weight: integer({ min: 1, max: 2 }),
      expires: option(integer({ min: 0, max: 16 }), { nil: Infinity }),
      does: constantFrom("wait", "take", "refuse"),
      ...interval,
      left: option(record({ call: integer({ min: 0, max: 16 }), length: integer({ min: 0, max: 4 }) })),
    }),
    { minLength: 1, maxLength: 3 },
  );
  const lists = option(
    record({ shown: integer({ min: 0, max: 7 }), held: integer({ min: 0, max: 7 }), ...interval }),
  );

  it("is judged as by trying all orders, with expiry at every moment", () => {
    const seen = { valid: 0, invalid: 0 };
    assert(
      property(entries, lists, (items, list) => {
        const all = items.map(({ kind, weight, expires, left }, id): ModelEntry => {
          const never = left !== null;
          return {
            id,
            kind,
            weight,
            permits: 2,
            token: null,
            expires: never ? Infinity : expires,
          };
        });
        const timed: { op: LockOp; call: number; length: number | null }[] = [];
        for (const [at, { does, call, left, ...item }] of items.entries()) {
          const entry = all[at];
          if (entry === undefined) continue;
          const length = item.length ?? 3;
          if (does === "wait") {
            timed.push(
              { op: { what: "append", entry }, call, length },
              { op: { what: "grant", entry }, call, length },
            );
          } else timed.push({ op: { what: does, entry }, call, length });
          if (left !== null && does !== "refuse") timed.push({ op: { what: "remove", entry }, ...left });
        }
        if (list !== null) {
          const shown = all.filter(({ id }) => (list.shown & (1 << id)) !== 0);
          const isHeld = ({ id }: ModelEntry): boolean => (list.held & (1 << id)) !== 0;
          const [holders, waiters] = [shown.filter(isHeld), shown.filter((entry) => !isHeld(entry))];
          const op: LockOp = {
            what: "list",
            holders: new Set(holders),
            waiters: new Set(waiters),
            behindStrangers: new Set(),
          };
          timed.push({ op, call: list.call, length: list.length });
        }
        const ops = spread(timed);
        const expiries = all
          .filter(({ expires }) => expires !== Infinity)
          .map((entry): TimedOp<PlainOp> => ({
            op: { what: "expire", entry },
            call: entry.expires,
            end: Infinity,
          }));
        const { verdict } = linearize(lockModel, ops);
        expect(verdict).toBe(
          isLinearizable<Queue, PlainOp>(plainStep, [], [...ops, ...expiries]) ? "valid" : "invalid",
        );
        if (verdict !== "unknown") seen[verdict] += 1;
      }),
      { numRuns: 3000 },
    );
    expect(seen.valid).toBeGreaterThan(100);
    expect(seen.invalid).toBeGreaterThan(100);
  });
});
