/** A few hundred seeds of the simulator, and that a seed always means the same. CI runs many more by the command. */
import { expect, it } from "vitest";
import { formatHistory } from "../../src/verify/history-text.ts";
import { simulate, simulateAll } from "../../src/verify/simulate.ts";

it("300 seeds are valid", async () => {
  const failed: string[] = [];
  let seeds = 0;
  await simulateAll(range(1, 301), ({ seed, result }) => {
    seeds += 1;
    if (result.verdict !== "valid") {
      failed.push(`seed ${seed}: ${JSON.stringify(result.violations.map(({ message }) => message))}`);
    }
    return true;
  });
  expect(failed).toEqual([]);
  expect(seeds).toBe(300);
}, 60_000);

it("the same seed gives the same history, alone and among others", async () => {
  const among = new Map<number, string>();
  await simulateAll(range(1, 41), ({ seed, events }) => {
    among.set(seed, formatHistory(events));
    return true;
  });
  for (const seed of range(1, 41)) {
    const alone = await simulate(seed);
    expect(formatHistory(alone.events)).toBe(among.get(seed));
  }
}, 60_000);

it("another seed gives another history", async () => {
  const [one, other] = [await simulate(1), await simulate(2)];
  expect(formatHistory(one.events)).not.toBe(formatHistory(other.events));
});

it("goes through what it claims to: waits, losses, faults, refusals, nested entries", async () => {
  const seen = new Set<string>();
  await simulateAll(range(1, 401), ({ events }) => {
    for (const { f, type, busy, parent, steal, fault, detail } of events) {
      seen.add(`${f} ${type}`);
      if (busy === true) seen.add("busy");
      if (parent !== undefined) seen.add("nested");
      if (steal === true) seen.add("steal");
      if (fault !== undefined) seen.add(fault);
      if (detail !== undefined) seen.add(detail);
    }
    return true;
  });
  for (const what of [
    "acquire ok",
    "acquire info",
    "try ok",
    "renew ok",
    "release ok",
    "release fail",
    "lost info",
    "held info",
    "query ok",
    "guard ok",
    "guard fail",
    "busy",
    "nested",
    "steal",
    "pause",
    "suspend",
    "kill",
    "step",
    "LOCK_TIMEOUT",
    "LOCK_LOST",
    "LOCK_OUTCOME_UNKNOWN",
    "AbortError",
  ]) {
    expect(seen, what).toContain(what);
  }
}, 60_000);

function* range(from: number, until: number): Generator<number> {
  for (let seed = from; seed < until; seed += 1) yield seed;
}
