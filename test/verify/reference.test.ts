/** The sweeps agree with the definitions on small random histories, most of which are wrong. */
import {
  array,
  assert,
  constantFrom,
  integer,
  option,
  property,
  record,
  tuple,
  type Arbitrary,
} from "fast-check";
import { describe, expect, it } from "vitest";
import { checkHistory, type CheckOptions } from "../../src/verify/checker.ts";
import type { Invariant } from "../../src/verify/checks/check.ts";
import { renumber, type HistoryEvent, type NewEvent } from "../../src/verify/history.ts";
import { breaksExclusion, breaksGuard, breaksHeld, breaksTokens, mostOvertaken } from "./reference.ts";

const small = (max: number): Arbitrary<number> => integer({ min: 0, max });

const requests = (kinds: readonly ("exclusive" | "shared" | "counted")[]) =>
  array(
    record({
      lock: constantFrom("a", "a", "b"),
      kind: constantFrom(...kinds),
      weight: integer({ min: 1, max: 3 }),
      permits: constantFrom(3, 3, 4),
      asked: small(20),
      waited: small(10),
      valid: option(small(12)),
      token: integer({ min: 1, max: 8 }),
      renewals: array(tuple(small(10), small(12)), { maxLength: 2 }),
      closed: option(tuple(small(15), constantFrom("release", "lost"))),
      seen: option(small(15)),
      write: option(small(20)),
    }),
    { maxLength: 6 },
  );

type Requests = typeof requests extends (kinds: never) => Arbitrary<infer T> ? T : never;

/** Turns random requests into events, in order of time; those of one moment stay in the order they were made. */
function toHistory(all: Requests): HistoryEvent[] {
  const timed: { t: number; event: NewEvent }[] = [];
  for (const [n, request] of all.entries()) {
    const { lock, kind, weight, permits, asked, waited, valid, token } = request;
    const own = { proc: `c${n}`, attempt: `${n}` };
    const ok = asked + waited;
    const until = (t: number): { validUntil?: bigint } => (valid === null ? {} : { validUntil: BigInt(t) });
    const counted = kind === "counted" ? { weight, permits } : { mode: kind };
    timed.push({ t: asked, event: { ...own, f: "acquire", type: "invoke", lock, ...counted } });
    timed.push({
      t: ok,
      event: { ...own, f: "acquire", type: "ok", token: BigInt(token), ...until(ok + (valid ?? 0)) },
    });
    for (const [call, [delay, longer]] of request.renewals.entries()) {
      timed.push({ t: ok + delay, event: { ...own, f: "renew", type: "invoke", call } });
      timed.push({
        t: ok + delay,
        event: { ...own, f: "renew", type: "ok", call, ...until(ok + delay + longer) },
      });
    }
    if (request.closed !== null) {
      const [delay, how] = request.closed;
      if (how === "lost") timed.push({ t: ok + delay, event: { ...own, f: "lost", type: "info" } });
      else {
        timed.push({ t: ok + delay, event: { ...own, f: "release", type: "invoke" } });
        timed.push({ t: ok + delay + 1, event: { ...own, f: "release", type: "info" } });
      }
    }
    if (request.seen !== null) timed.push({ t: ok + request.seen, event: { ...own, f: "held", type: "ok" } });
    if (request.write !== null) {
      timed.push({
        t: request.write,
        event: { proc: "store", f: "guard", type: "ok", lock, token: BigInt(token) },
      });
    }
  }
  timed.sort((a, b) => a.t - b.t);
  const last = { proc: "checker", f: "end", type: "ok", leaks: {} } as const;
  return renumber(
    [...timed, { t: 1000, event: last }].map(({ t, event }) => ({ i: -1, t: BigInt(t), ...event })),
  );
}

const refuses = (
  events: readonly HistoryEvent[],
  invariant: Invariant,
  options: CheckOptions = {},
): boolean => checkHistory(events, { ...options, invariants: [invariant] }).verdict === "invalid";

describe("the sweep agrees with the definition", () => {
  it.each<[Invariant, (events: readonly HistoryEvent[]) => boolean]>([
    ["M1", breaksExclusion],
    ["M2", breaksTokens],
    ["M3", breaksGuard],
    ["M6", breaksHeld],
  ])("%s", (invariant, breaks) => {
    const verdicts = new Set<boolean>();
    assert(
      property(requests(["exclusive", "shared", "counted"]), (all) => {
        const events = toHistory(all);
        const expected = breaks(events);
        expect(refuses(events, invariant)).toBe(expected);
        verdicts.add(expected);
      }),
      { numRuns: 3000 },
    );
    expect(verdicts.size).toBe(2);
  });

  it("M1 where all is counted", () => {
    assert(
      property(requests(["counted"]), (all) => {
        const events = toHistory(all);
        expect(refuses(events, "M1")).toBe(breaksExclusion(events));
      }),
      { numRuns: 3000 },
    );
  });

  it("F1 for every bound", () => {
    assert(
      property(requests(["exclusive", "shared"]), small(3), (all, overtakes) => {
        const events = toHistory(all);
        expect(refuses(events, "F1", { overtakes })).toBe(mostOvertaken(events) > overtakes);
      }),
      { numRuns: 3000 },
    );
  });
});
