/**
 * What `holdfast verify` finds: its engine over each backend that is broken on purpose. Most are found, by the invariant
 * that the table names; what no history of users can show is listed with the reason, and is left to the contract.
 */
import { describe, expect, it } from "vitest";
import { brokenBackends, brokenBy } from "../../src/testing/broken/index.ts";
import type { Invariant } from "../../src/verify/checks/check.ts";
import type { Judgement } from "../../src/verify/live/judge.ts";
import { realMemoryStore, verifyInProcess } from "./in-process.ts";

/** Each broken backend that is found, and by what: by one of these at least, whichever shows first. */
const found: Readonly<Record<string, readonly Invariant[]>> = {
  "late commit: an entry becomes visible after those behind it": ["M1", "A1"],
  "last come, first listed": ["A1"],
  "an append is answered before it happens": ["M1", "A1", "L1"],
  "not monotone: entries behind count as ahead": ["L1"],
  "takes the count for the weight": ["M1", "A1"],
  "sees a writer ahead only if it is the nearest": ["M1", "A1"],
  "grants what its own client has already": ["M1", "A1"],
  "append is not idempotent": ["L1"],
  "a refused append leaves its entry in the queue": ["A1"],
  "onlyIfGranted is ignored": ["A1"],
  "onlyIfGranted refuses whenever somebody is there": ["A1"],
  "seq restarts when the queue empties": ["M2"],
  "seq goes back": ["M2"],
  "seq is counted by each client": ["M2"],
  "seq is a number": ["M2"],
  "remove does not look at the id": ["M1", "A1"],
  "remove of what is not there takes the first": ["M1"],
  "remove takes all that is behind, too": ["M1", "A1"],
  "remove says yes and does nothing": ["A1", "L1"],
  "entries expire by the clock of the client, which stands still": ["L1"],
  "the remaining life is rounded up to ten seconds": ["L1"],
  "expired entries stay until somebody removes them": ["L1"],
  "an expired waiter in the middle keeps its place": ["L1"],
  "a renewal does nothing": ["M1"],
  "a renewal sends the entry to the tail": ["M1", "A1"],
  "wake-ups are lost": ["L1"],
  "only the first of several watchers is woken": ["L1"],
  "a wake-up says first, whoever is ahead": ["M1", "A1"],
  "a watch fires before the other has left, and says first": ["M1", "A1"],
  "names are lower-cased": ["A1"],
  "names are cut at 64 characters": ["A1"],
  "names are trimmed": ["A1"],
  "names are normalised": ["A1"],
  "names are kept as ASCII": ["A1"],
  "names are paths": ["A1"],
  "names end at a colon": ["A1"],
  "semaphores stand with the locks": ["A1"],
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
};

const harmless = "the core takes it as it comes: users see nothing of it but the cost";
const noSteal =
  "needs an eviction, after which a holder may believe until it hears of it: nothing is promised";
const order = "the core sends one after the other what must not be overtaken";
const shut = "clients close in the end, when nobody watches any more";
const again = "needs the same entry twice at the store, and the second is gone before anybody minds";

/** Those that no history shows, and why. */
const unseen: Readonly<Record<string, string>> = {
  "calls of one client overtake each other": order,
  "counts nobody ahead": "the number is for people: no rule reads it where there is a nearest entry",
  "takes the nearest for the nearest writer": "a reader waits for readers: slower, and nobody is overtaken",
  "takes the first for the nearest": harmless,
  "sees somebody ahead of a free lock": harmless,
  "append looks first and then appends, and is overtaken in between": again,
  "appended again, an entry goes to the tail": again,
  "appended again, an entry lives longer": again,
  "renews whatever has the id": again,
  "evicts whatever has the id": noSteal,
  "an id that has left is not taken again": noSteal,
  "onlyIfGranted refuses what is found again": again,
  "declares no shared locks, and grants them": "who is told that there are none asks for none",
  "declares no semaphores, and grants permits": "who is told that there are none asks for none",
  "remove does not look at the queue": "ids are unique, so that none is in two queues",
  "remove always says that it was there": "who has lost its lock is told so without asking the store",
  "entries expire after half of their ttl":
    "only in the third of a ttl before the first renewal: found now and then, by M1",
  "a ttl beyond 2^31 ms wraps": "needs a ttl of weeks, which would be left behind if the run were killed",
  "a renewal brings a removed entry back":
    "its life is short, and nobody renews it: it looks like a dead waiter",
  "a renewal of what is gone is answered with renewed": noSteal,
  "a batch is answered with the renewed ones first":
    "needs a lock that is gone in one batch with one that is not",
  "a batch beyond 256 is cut": "needs hundreds of locks in one client",
  "an eviction is not told": noSteal,
  "each removal is told as an eviction": noSteal,
  "an eviction is told to everybody": noSteal,
  "what has left before the watch stood is not reported":
    "only if it leaves between the append and the watch; whoever waits looks again when the entry ahead would expire",
  "wake-ups of those who wait for permits are lost":
    "whoever waits looks again when an entry ahead would expire: found most times, by L1, and missed on a busy machine",
  "an eviction wakes nobody": noSteal,
  "everybody is woken": harmless,
  "a watch that was ended is still called": harmless,
  "a dead waiter is told what was ahead of it": "needs a waiter that dies in the queue just before its turn",
  "close leaves a timer": shut,
  "close does not close": shut,
  "close rejects the second time": shut,
  "close takes the client's entries along": shut,
  "close of one client ends the watches of all": shut,
  "watches outlive their client": shut,
  "names are properties of an object": "all names begin with a prefix of the run's own",
};

/** A short run first; most need no more. */
async function verify(name: string): Promise<Judgement> {
  const broken = brokenBackends.find((each) => each.name === name);
  if (broken === undefined) throw new Error(`there is no broken backend ${name}`);
  const brief = await verifyInProcess(broken.open(realMemoryStore()), { seed: 2, forMs: 9_000 });
  if (brief.result.verdict !== "valid") return brief;
  return verifyInProcess(broken.open(realMemoryStore()), { seed: 4, forMs: 45_000 });
}

describe("the engine of verify", () => {
  it.concurrent("finds nothing where nothing is broken", async () => {
    const nothing = brokenBy("nothing", () => () => ({})).open(realMemoryStore());
    const { result } = await verifyInProcess(nothing, { seed: 6, forMs: 12_000 });
    expect(result.violations).toEqual([]);
    expect(result.verdict).toBe("valid");
  }, 90_000);

  it.concurrent.each(Object.entries(found))(
    "finds within a minute: %s",
    async (name, expected) => {
      const { result } = await verify(name);
      expect(result.verdict).toBe("invalid");
      const broken = result.violations.map(({ invariant }) => invariant);
      expect(expected.filter((invariant) => broken.includes(invariant))).not.toEqual([]);
    },
    120_000,
  );
});

it("every broken backend is in one of the two tables", () => {
  const named = [...Object.keys(found), ...Object.keys(unseen)].toSorted();
  expect(named).toEqual(brokenBackends.map(({ name }) => name).toSorted());
});
