/**
 * How long each grant is valid: V = [ok, min(release.invoke, validUntil after the last ok renewal, lost)), half open.
 * An unknown acquire opens none; an unknown release still closes it. A killed holder no longer acts, so a kill closes
 * it too; and a holder whose lock is stolen or whose entry is evicted loses its claim when that begins, although it goes
 * on believing until it hears of it.
 */
import type { HistoryEvent } from "./history.ts";
import { compareTokens, rootOf, type Grant, type LockTrace, type Trace } from "./trace.ts";

/** Sets believedEnd and end of every grant of a trace whose events are all joined. */
export function settleValidity(trace: Trace): void {
  // A root comes before what is nested in it.
  for (const grant of trace.grants) {
    const { leaver } = grant.attempt;
    if (grant.parent === null) grant.believedEnd = believedEnd(trace, grant);
    else grant.believedEnd = Math.min(leaver?.i ?? Infinity, rootOf(grant).believedEnd);
    grant.end = grant.believedEnd;
  }
  for (const lock of trace.locks.values()) if (lock.seized) settleSeizures(lock);
}

/** The first position at or after `from` whose time is not before t; Infinity if there is none. */
export function firstAt(events: readonly HistoryEvent[], t: bigint, from = 0): number {
  let low = from;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const event = events[middle];
    if (event !== undefined && event.t < t) low = middle + 1;
    else high = middle;
  }
  return low === events.length ? Infinity : low;
}

/** The time at which a grant's validity ends; that of the last event where it outlives the history. */
export function endTime(trace: Trace, grant: Grant): bigint {
  const cut = trace.events[Math.min(grant.end, trace.events.length - 1)]?.t ?? grant.ok.t;
  const { validUntil } = rootOf(grant).proof;
  if (grant.end === Infinity) return validUntil ?? cut;
  return validUntil !== undefined && validUntil < cut ? validUntil : cut;
}

/** Where the holder of this very handle stops believing: a nested entry may outlive the handle it entered by. */
export function handleEnd(grant: Grant): number {
  return Math.min(grant.believedEnd, grant.attempt.leaver?.i ?? Infinity);
}

function believedEnd(trace: Trace, root: Grant): number {
  const { closer, ok } = root;
  const { validUntil } = root.proof;
  let end = closer?.i ?? Infinity;
  if (validUntil !== undefined && (closer === null || validUntil <= closer.t)) {
    end = Math.min(end, firstAt(trace.events, validUntil, ok.i));
  }
  const killed = trace.kills.get(root.proc);
  return killed === undefined ? end : Math.min(end, killed);
}

function settleSeizures(lock: LockTrace): void {
  for (const grant of lock.grants) {
    for (const { invoke, end } of grant.attempt.evictions) {
      if (end === null || (end.type !== "fail" && end.i > grant.ok.i)) seize(grant, invoke);
    }
  }
  // One that failed in the end may have taken others out before it did.
  const thieves = lock.attempts.filter(({ call }) => call.invoke.steal === true);
  const numbered = thieves.flatMap(({ grant }) => (grant?.token === undefined ? [] : [grant]));
  settleNumberedThefts(lock.grants, numbered);
  // Where the thief's token is not known, it may have displaced all that had joined before it ended, even if they hear of
  // their grant later: what it sent may be on its way for longer than it waits.
  for (const { call, grant } of thieves) {
    if (grant?.token !== undefined) continue;
    for (const victim of lock.grants) {
      if (victim !== grant && victim.attempt.call.invoke.i < (call.end?.i ?? Infinity))
        seize(victim, call.invoke);
    }
  }
}

/** A thief displaces the grants with lower tokens: for each, the first such theft counts. */
function settleNumberedThefts(grants: readonly Grant[], thieves: readonly Grant[]): void {
  if (thieves.length === 0) return;
  const byToken = grants.toSorted((a, b) => compareTokens(b.token, a.token));
  const thievesByToken = thieves.toSorted((a, b) => compareTokens(b.token, a.token));
  let first: HistoryEvent | null = null;
  let next = 0;
  for (const grant of byToken) {
    for (; ; next += 1) {
      const thief = thievesByToken[next];
      if (thief === undefined || compareTokens(thief.token, grant.token) <= 0) break;
      const { invoke } = thief.attempt.call;
      if (first === null || invoke.i < first.i) first = invoke;
    }
    if (first !== null) seize(grant, first);
  }
}

function seize(grant: Grant, by: HistoryEvent): void {
  grant.end = Math.min(grant.end, Math.max(by.i, grant.ok.i));
}
