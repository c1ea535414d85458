/** What `holdfast verify` finds: its engine over each backend that is broken on purpose, and by which invariant. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { brokenBackends, sound } from "../../src/testing/broken/index.ts";
import type { Invariant, Violation } from "../../src/verify/checks/check.ts";
import { verifyInProcess } from "./in-process.ts";

/** Each broken backend, and by what it is found: by one of these at least. */
const found: Readonly<Record<string, readonly Invariant[]>> = {
  "late commit: an entry becomes visible after those behind it": ["M1", "F1", "A1"],
  "last come, first listed": ["A1"],
  "calls of one client overtake each other": ["F1"],
  "an append is answered before it happens": ["M1", "A1", "L1"],
  "not monotone: entries behind count as ahead": ["L1"],
  "counts nobody ahead": ["A1"],
  "takes the count for the weight": ["M1", "A1"],
  "takes the nearest for the nearest writer": ["L1"],
  "sees a writer ahead only if it is the nearest": ["M1", "A1"],
  "grants what its own client has already": ["M1", "A1"],
  "takes the first for the nearest": ["A1"],
  "sees somebody ahead of a free lock": ["A1"],
  "a hand-over leaves the entry where it is": ["A1", "L1"],
  "a hand-over takes the heir out, too": ["M1"],
  "append is not idempotent": ["L1", "A1"],
  "append looks first and then appends, and is overtaken in between": ["L1", "L2", "A1"],
  "appended again, an entry goes to the tail": ["M1", "F1", "A1"],
  "appended again, an entry lives longer": ["L1"],
  "renews whatever has the id": ["M6"],
  "evicts whatever has the id": ["M5"],
  "releases whatever has the id": ["M5"],
  "an id that has left is not taken again": ["L3"],
  "a refused append leaves its entry in the queue": ["A1"],
  "onlyIfGranted is ignored": ["A1"],
  "onlyIfGranted refuses whenever somebody is there": ["A1"],
  "onlyIfGranted refuses what is found again": ["A1"],
  "declares no shared locks, and grants them": ["A1"],
  "declares no semaphores, and grants permits": ["A1"],
  "seq restarts when the queue empties": ["M2"],
  "seq goes back": ["M2"],
  "seq is counted by each client": ["M2"],
  "seq is a number": ["M2"],
  "remove does not look at the id": ["M1", "M5", "A1"],
  "remove of what is not there takes the first": ["M1", "M5"],
  "remove always says that it was there": ["M5"],
  "remove takes all that is behind, too": ["M1", "A1"],
  "remove says yes and does nothing": ["A1", "L1"],
  "entries expire by the clock of the client, which stands still": ["L1", "L3"],
  "entries expire after half of their ttl": ["L4"],
  "a ttl beyond 2^31 ms wraps": ["L4"],
  "the remaining life is rounded up to ten seconds": ["M1", "L1"],
  "expired entries stay until somebody removes them": ["L1", "L2"],
  "an expired waiter in the middle keeps its place": ["L1", "L2"],
  "a renewal brings a removed entry back": ["L2", "A1", "L3"],
  "a renewal of what is gone is answered with renewed": ["M6"],
  "a renewal does nothing": ["M1"],
  "a renewal sends the entry to the tail": ["M1", "A1"],
  "a batch is answered with the renewed ones first": ["L4", "M6"],
  "a batch beyond 256 is cut": ["L4"],
  "an eviction is not told": ["L3"],
  "wake-ups are lost": ["L1"],
  "wake-ups of those who wait for permits are lost": ["L1"],
  "only the first of several watchers is woken": ["L1"],
  "what has left before the watch stood is not reported": ["L1"],
  "who was told once is told no more": ["L1"],
  "an eviction wakes nobody": ["L1"],
  "a wake-up says first, whoever is ahead": ["M1", "A1"],
  "a watch fires before the other has left, and says first": ["M1", "A1"],
  "a dead waiter is told what was ahead of it": ["M1"],
  "close leaves a timer": ["L2"],
  "close does not close": ["L3"],
  "close rejects the second time": ["L3"],
  "close takes the client's entries along": ["M1"],
  "close of one client ends the watches of all": ["L1"],
  "names are lower-cased": ["A1"],
  "names are cut at 64 characters": ["A1"],
  "names are trimmed": ["A1"],
  "names are normalised": ["A1"],
  "names are kept as ASCII": ["A1"],
  "names are paths": ["A1"],
  "names end at a colon": ["A1"],
  "semaphores stand with the locks": ["A1"],
  "names are properties of an object": ["L3"],
  "a listing has what starts with its name": ["A1"],
  "queues takes the prefix for a pattern": ["A1"],
  "queues remembers those that are empty": ["L2"],
  "metadata is lost": ["A1"],
  "metadata is cut at 255 characters": ["A1"],
  "the owner's label is lost": ["A1"],
  "all owners are one": ["A1"],
  "every entry is a writer": ["A1"],
  "every entry is a reader": ["M1", "A1"],
  "every entry weighs one": ["M1", "A1"],
  "permits are not shown": ["A1"],
  "everybody is woken": ["A1"],
  "a watch that was ended is still called": ["L2"],
  "watches outlive their client": ["L2"],
  "an eviction is told to everybody": ["A1"],
  "each removal is told as an eviction": ["A1"],
  "a renewal that meets an eviction does not say so": ["A1"],
  "of a renewal that is there twice one is answered with gone": ["M6"],
  "remove does not look at the queue": ["M5"],
};

/** So many run at the same time: most of the time all of them wait. */
const lanes = 8;

/**
 * How late this process may be on average for one more to begin, in milliseconds. All of them run in it: where there is little of the
 * machine to be had, each is to have enough to judge who waits for how long.
 */
const mostLateMs = 20;

/** How long seed after seed is begun with, in milliseconds: a run that begins then ends within the minute. */
const beginForMs = 45_000;

/** Runs by seed after seed, each with a calm opening and some faults, until it is found or the minute is over. */
async function find(name: string, expected: readonly Invariant[]): Promise<readonly Violation[]> {
  const broken = brokenBackends.find((each) => each.name === name);
  if (broken === undefined) throw new Error(`there is no broken backend ${name}`);
  const all: Violation[] = [];
  const begunAt = performance.now();
  // Each opening is longer than the one before: on a busy machine the stories of a short one do not all come to their turn.
  for (
    let [seed, calmMs] = [2, 4_000];
    performance.now() - begunAt < beginForMs;
    seed *= 2, calmMs += 2_000
  ) {
    const { result } = await verifyInProcess(broken.open, { seed, calmMs, forMs: calmMs + 3_500 });
    all.push(...result.violations);
    if (all.some(({ invariant }) => expected.includes(invariant))) break;
  }
  return all;
}

const runs = new Map<string, Promise<readonly Violation[]>>();

/** Starts all, a few at a time, in the order of the table. */
function startAll(): void {
  const lateMs = watchLateness();
  const active = new Set<string>();
  const isBusy = (): boolean => active.size === lanes || (active.size > 0 && lateMs() > mostLateMs);
  let begun: Promise<unknown> = Promise.resolve();
  for (const [name, expected] of Object.entries(found)) {
    const begin = begun.then(async () => {
      // One after the other: what those that have begun take is to be seen.
      do await sleep(100);
      while (isBusy());
      active.add(name);
    });
    const run = begin.then(() => find(name, expected));
    const over = (): boolean => active.delete(name);
    run.then(over, over);
    runs.set(name, run);
    begun = begin;
  }
}

/** Gives a function that says how late timers of this process are lately, on average. */
function watchLateness(): () => number {
  const everyMs = 20;
  let late = 0;
  let due = performance.now() + everyMs;
  setInterval(() => {
    const now = performance.now();
    // Weighed by time: of one that stood still for a second no more is to be seen than of one that was late for all of it.
    const share = Math.min(1, (now - due + everyMs) / 1_000);
    late += (Math.max(0, now - due) - late) * share;
    due = now + everyMs;
  }, everyMs).unref();
  return () => late;
}

describe("the engine of verify", () => {
  it("finds nothing where nothing is broken", async () => {
    const { result } = await verifyInProcess(sound.open, { seed: 6, calmMs: 4_000, forMs: 9_000 });
    startAll();
    expect(result.violations).toEqual([]);
    expect(result.verdict).toBe("valid");
  }, 90_000);

  it.each(Object.entries(found))(
    "finds within a minute: %s",
    async (name, expected) => {
      if (runs.size === 0) startAll();
      const violations = (await runs.get(name)) ?? [];
      const seen = new Set(violations.map(({ invariant }) => invariant));
      expect(expected.filter((invariant) => seen.has(invariant))).not.toEqual([]);
    },
    180_000,
  );
});

it("every broken backend is in the table", () => {
  expect(Object.keys(found).toSorted()).toEqual(brokenBackends.map(({ name }) => name).toSorted());
});
