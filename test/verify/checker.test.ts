/** The checker accepts what is right and refuses each kind of wrong history. */
import { assert, boolean, integer, pre, property, tuple } from "fast-check";
import { describe, expect, it } from "vitest";
import { checkHistory, checkText, INVARIANTS, type CheckResult } from "../../src/verify/checker.ts";
import { History, type HistoryEvent, type NewEvent } from "../../src/verify/history.ts";
import { formatHistory } from "../../src/verify/history-text.ts";
import { generateHistory } from "./generate.ts";
import { mutations } from "./mutations.ts";
import { seeded } from "./random.ts";

const seeds = integer({ min: 0, max: 2 ** 31 });
const refusedFor = ({ violations }: CheckResult): Set<string> =>
  new Set(violations.map(({ invariant }) => invariant));

describe("generated correct histories are valid", () => {
  it.each([
    ["plain", {}],
    ["one lock", { locks: ["exclusive"], requests: 20, procs: 6 }],
    ["readers and writers", { locks: ["shared"], requests: 20, procs: 6 }],
    ["counted", { locks: ["counted"], requests: 20, procs: 6 }],
    ["clients that die", { kill: true, requests: 20 }],
    ["thieves and evictions", { seize: true, requests: 20 }],
    ["all at once", { seize: true, kill: true, requests: 40 }],
  ])("%s", (_, options) => {
    assert(
      property(seeds, (seed) => {
        const { verdict, violations, doubts } = checkHistory(generateHistory(seed, options), { waitMs: 1e9 });
        expect({ verdict, violations, doubts }).toEqual({ verdict: "valid", violations: [], doubts: [] });
      }),
      { numRuns: 300 },
    );
  });

  it("looks at everything that they have", () => {
    const { checked } = checkHistory(generateHistory(7, { requests: 200 }), { waitMs: 1e9 });
    expect(checked.map(({ invariant }) => invariant)).toEqual(INVARIANTS.filter((each) => each !== "L4"));
    expect(checked.filter(({ looked }) => looked === 0)).toEqual([]);
  });
});

describe("a single change is found", () => {
  it.each(mutations)(
    "$breaks: $name",
    ({ breaks, apply }) => {
      assert(
        property(tuple(seeds, boolean()), ([seed, oneLock]) => {
          const events = generateHistory(
            seed,
            oneLock ? { locks: ["exclusive"], requests: 16 } : { requests: 24 },
          );
          const mutated = apply(events, seeded(seed));
          pre(mutated !== null);
          const result = checkHistory(mutated, { limit: 1000 });
          expect(result.verdict).toBe("invalid");
          expect(refusedFor(result)).toContain(breaks);
        }),
        { numRuns: 150, maxSkipsPerRun: 100 },
      );
      // They only compute: how long that takes is the machine's.
    },
    60_000,
  );
});

function record(...events: NewEvent[]): readonly HistoryEvent[] {
  let t = 0n;
  const history = new History({ now: () => (t += 1_000_000n) });
  for (const event of events) history.record(event);
  return history.events;
}

const end: NewEvent = { proc: "checker", f: "end", type: "ok", leaks: {}, pending: 0 };
const ask: NewEvent = { proc: "c1", f: "acquire", type: "invoke", lock: "a", attempt: "1" };
const got: NewEvent = { proc: "c1", f: "acquire", type: "ok", attempt: "1", token: 1n };
const release: NewEvent = { proc: "c1", f: "release", type: "invoke", attempt: "1" };

const turn = (attempt: string, token: bigint): NewEvent[] => [
  { ...got, proc: attempt, attempt, token },
  { ...release, proc: attempt, attempt },
  { ...release, proc: attempt, attempt, type: "ok" },
];

describe("verdicts", () => {
  it("an empty history proves nothing", () => {
    expect(checkHistory([])).toMatchObject({ verdict: "unknown" });
    expect(checkText("")).toMatchObject({ verdict: "unknown" });
  });

  it("a history that was cut off anywhere is never valid", () => {
    const events = generateHistory(3);
    const text = formatHistory(events);
    for (let length = 0; length < events.length; length += 1) {
      expect(checkHistory(events.slice(0, length)).verdict).not.toBe("valid");
    }
    for (let length = 0; length < text.length - 1; length += 97) {
      expect(checkText(text.slice(0, length)).verdict).not.toBe("valid");
    }
  });

  it("a history that lost a line is unknown", () => {
    const lines = formatHistory(generateHistory(3)).split("\n");
    for (const at of lines.slice(0, -2).keys()) {
      const { verdict, doubts } = checkText(lines.toSpliced(at, 1).join("\n"));
      expect(verdict).toBe("unknown");
      expect(doubts.join()).toMatch(new RegExp(`line ${at + 1}: expected event ${at} but found ${at + 1}`));
    }
  });

  it.each<[string, NewEvent[]]>([
    ["event 0: acquire ok by .* no attempt that was asked for", [got, end]],
    ["event 1: acquire invoke .* used before", [ask, ask, end]],
    ["event 2: acquire ok .* had ended before", [ask, got, got, end]],
    ["event 1: release ok .* never invoked", [ask, { ...release, type: "ok" }, end]],
    ["event 3: release invoke .* under way", [ask, got, release, release, end]],
    [
      "event 0: acquire invoke .* names no lock",
      [{ proc: "c1", f: "acquire", type: "invoke", attempt: "1" }, end],
    ],
    ["event 1: release invoke .* another lock", [ask, { ...release, lock: "b" }, end]],
    ["event 1: try ok .* is not a try", [ask, { ...got, f: "try" }, end]],
    ["event 1: acquire ok .* only a try", [ask, { ...got, busy: true }, end]],
    ["event 1: acquire ok .* parent is not known", [ask, { ...got, parent: "x" }, end]],
    ["event 1: held invoke .* no call", [ask, { proc: "c1", f: "held", type: "invoke", attempt: "1" }, end]],
    ["event 0: fault ok .* no such fault", [{ proc: "n", f: "fault", type: "ok", fault: "pause" }, end]],
  ])("is unknown for %s", (message, events) => {
    const { verdict, doubts } = checkHistory(record(...events));
    expect(verdict).toBe("unknown");
    expect(doubts.join()).toMatch(new RegExp(message));
  });

  it("is unknown when time goes back or a position is wrong", () => {
    const events = record(ask, got, end);
    expect(
      checkHistory(events.map((event) => (event.i === 1 ? { ...event, t: 0n } : event))).doubts.join(),
    ).toMatch(/event 1: .* time went back/);
    expect(checkHistory(events.filter(({ i }) => i !== 1)).doubts).toEqual([
      "event 1: found event 2 in its place",
    ]);
  });

  it("is unknown where an invariant cannot be judged", () => {
    const clean = [ask, got, release, { ...release, type: "ok" } as const];
    expect(checkHistory(record(...clean, end)).verdict).toBe("valid");
    expect(checkHistory(record(...clean, { ...end, leaks: undefined }))).toMatchObject({
      verdict: "unknown",
      doubts: ["L2: no end event says what was left behind."],
    });
    expect(checkHistory(record(...clean, end), { invariants: ["L1"] })).toMatchObject({ verdict: "unknown" });
    const write: NewEvent = { proc: "c1", f: "write", type: "invoke", lock: "a", value: "v" };
    expect(checkHistory(record(...clean, write, { ...write, type: "ok" }, end))).toMatchObject({
      verdict: "unknown",
      doubts: ['M4: "a" was not read after its last acknowledged write.'],
    });
  });

  it("judges only what is claimed", () => {
    const second: NewEvent = { ...ask, proc: "c2", attempt: "2" };
    const overlap = record(ask, got, second, { ...got, proc: "c2", attempt: "2", token: 2n }, end);
    expect(refusedFor(checkHistory(overlap))).toEqual(new Set(["M1"]));
    expect(checkHistory(overlap, { invariants: ["M2", "M3"] })).toEqual({
      verdict: "valid",
      violations: [],
      doubts: [],
      checked: [
        { invariant: "M2", looked: 2 },
        { invariant: "M3", looked: 0 },
      ],
    });
  });

  it("reports no more than asked for, the first to become certain first", () => {
    const seen = Array.from({ length: 5 }, (): NewEvent => ({
      proc: "c1",
      f: "held",
      type: "ok",
      attempt: "1",
    }));
    const events = record(ask, got, release, { ...release, type: "ok" }, ...seen, end);
    const { violations } = checkHistory(events, { limit: 3 });
    expect(violations.map(({ events: proof }) => proof.at(-1)?.i)).toEqual([4, 5, 6]);
  });

  it("allows as many overtakes as it is told to", () => {
    const asks = ["1", "2", "3"].map((attempt): NewEvent => ({ ...ask, proc: attempt, attempt }));
    const events = record(...asks, ...turn("2", 2n), ...turn("3", 3n), ...turn("1", 1n), end);
    expect(refusedFor(checkHistory(events))).toEqual(new Set(["F1"]));
    expect(refusedFor(checkHistory(events, { overtakes: 1 }))).toEqual(new Set(["F1"]));
    expect(checkHistory(events, { overtakes: 2 }).verdict).toBe("valid");
  });
});
