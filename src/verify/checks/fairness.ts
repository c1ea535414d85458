/**
 * F1: nobody is overtaken more often than the bound. Where a backend keeps arrival order a token is a place in the
 * queue, so a grant that comes while somebody with a smaller token waits in its way overtakes that waiter; and so does one
 * that comes before that of a request which was known to be ahead, whatever their tokens say.
 */
import { Fenwick } from "../fenwick.ts";
import type { HistoryEvent } from "../history.ts";
import { compareTokens, type Grant, type LockTrace, type Trace } from "../trace.ts";
import { firstAt } from "../validity.ts";
import { holder, quote } from "../words.ts";
import type { Check, Findings } from "./check.ts";

/** Counts, for each grant, those that passed it while it waited. */
export const checkFairness: Check = (trace, findings, { overtakes }) => {
  let looked = 0;
  for (const lock of trace.locks.values()) {
    const numbered = lock.grants.filter(({ token }) => token !== undefined);
    looked += numbered.length;
    if (!isSorted(numbered)) checkLock(trace, lock, numbered, overtakes, findings);
    for (const grant of lock.grants) if (overtakes === 0) checkBehind(lock, grant, findings);
  }
  return looked;
};

function isSorted(grants: readonly Grant[]): boolean {
  let last = -1n;
  for (const { token } of grants) {
    if (token === undefined || token < last) return false;
    last = token;
  }
  return true;
}

type Point = readonly [
  position: number,
  what: "asks" | "served" | "passes" | "ends",
  grant: Grant,
  rank: number,
];

/**
 * Steps: 1. number the grants by token; 2. walk along their requests, grants and ends in order; 3. at each grant, those
 * with a larger number that were granted since it was asked for have overtaken it.
 */
function checkLock(
  { events }: Trace,
  lock: LockTrace,
  grants: readonly Grant[],
  overtakes: number,
  findings: Findings,
): void {
  const byToken = grants.toSorted((a, b) => compareTokens(a.token, b.token));
  const points = byToken.flatMap((grant, rank): Point[] => [
    [grant.attempt.call.invoke.i, "asks", grant, rank],
    [servedAt(events, grant), "served", grant, rank],
    [grant.ok.i, "passes", grant, rank],
    [grant.end, "ends", grant, rank],
  ]);
  points.sort((a, b) => a[0] - b[0]);
  const passed = new Fenwick(grants.length);
  const passedByWriters = new Fenwick(grants.length);
  const weights = new Fenwick(grants.length);
  const before = new Map<Grant, number>();
  const overtakers = new Set<Grant>();
  for (const [, what, grant, rank] of points) {
    const passing = grant.kind === "shared" ? passedByWriters : passed;
    if (what === "asks") {
      before.set(grant, passing.above(rank));
      weights.add(rank, grant.weight);
    } else if (what === "ends") {
      weights.add(rank, -grant.weight);
    } else if (what === "served") {
      const times = passing.above(rank) - (before.get(grant) ?? 0);
      if (times > overtakes && !robbed(grant)) report(lock, grant, overtakers, overtakes, findings);
    } else if (!grant.steal && !fits(grant, rank, weights)) {
      overtakers.add(grant);
      passed.add(rank, 1);
      if (grant.kind === "exclusive") passedByWriters.add(rank, 1);
    }
  }
}

/**
 * By when the store had surely granted it: when it heard of that, or, if it stood still for so long, just before its validity
 * ended. Whoever is granted from then on may have come after it.
 */
function servedAt(events: readonly HistoryEvent[], { attempt, ok }: Grant): number {
  if (ok.validUntil === undefined || ok.validUntil > ok.t) return ok.i;
  return firstAt(events, ok.validUntil, attempt.call.invoke.i + 1) - 0.5;
}

/** Taken out before it heard of its grant: whoever came next did not pass it. */
function robbed(grant: Grant): boolean {
  return grant.end <= grant.ok.i && grant.believedEnd > grant.ok.i;
}

/** A counted grant that fits beside all that is surely ahead of it passes nobody: they were grantable too. */
function fits(grant: Grant, rank: number, weights: Fenwick): boolean {
  return grant.kind === "counted" && weights.below(rank) + grant.weight <= grant.permits;
}

/** Whoever waited for longer than its ttl may have expired and joined again; whoever was stolen from, too. */
function checkBehind(lock: LockTrace, grant: Grant, findings: Findings): void {
  const first = grant.attempt.behind?.grant ?? null;
  if (first === null || lock.seized || first.ok.i < grant.ok.i || !conflict(first, grant)) return;
  const { invoke } = first.attempt.call;
  if (invoke.ttl !== undefined && first.ok.t - invoke.t > BigInt(Math.floor(invoke.ttl * 1e6))) return;
  findings.violate(
    `${holder(grant)} got ${quote(lock.name)} before ${holder(first)}, which was known to be ahead of it.`,
    [invoke, grant.attempt.call.invoke, grant.ok, first.ok],
  );
}

function conflict(a: Grant, b: Grant): boolean {
  if (a.kind === "counted" && b.kind === "counted") return a.weight + b.weight > b.permits;
  return a.kind !== "shared" || b.kind !== "shared";
}

function report(
  lock: LockTrace,
  waiter: Grant,
  overtakers: ReadonlySet<Grant>,
  overtakes: number,
  findings: Findings,
): void {
  const { invoke } = waiter.attempt.call;
  const passing = [...overtakers].filter(
    (other) =>
      other.ok.i > invoke.i &&
      (other.token ?? 0n) > (waiter.token ?? 0n) &&
      (waiter.kind !== "shared" || other.kind === "exclusive"),
  );
  const proof = passing.slice(0, overtakes + 1);
  const ahead = proof.map(holder).join(", ");
  findings.violate(
    `${ahead} got ${quote(lock.name)} before ${holder(waiter)}, which stood ahead in the queue.`,
    [invoke, ...proof.map(({ ok }) => ok), waiter.ok],
  );
}
