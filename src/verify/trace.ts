/**
 * The form in which checks see a history: events joined to calls, requests and grants, per lock. Joined by tracer.ts;
 * how long a grant is valid is worked out in validity.ts, what is right and wrong in checks/.
 *
 * Positions (an event's i) stand for moments: time never falls along a history and events of one moment are in order.
 */
import type { HistoryEvent } from "./history.ts";

/** A call and how it ended; null while it never did. */
export interface Call {
  readonly invoke: HistoryEvent;
  end: HistoryEvent | null;
}

export type GrantKind = "exclusive" | "shared" | "counted";

/** One acquire or try, and all that was done with it. */
export interface Attempt {
  readonly id: string;
  readonly lock: LockTrace;
  readonly owner: string;
  readonly call: Call;
  /** The grant with the highest token of those given out before this one was asked for. */
  readonly floor: Grant | null;
  /** An attempt that surely stands ahead of it in the queue, as long as neither expires. */
  readonly behind: Attempt | null;
  grant: Grant | null;
  /** The owner's first release or loss: from here on it no longer acts. */
  leaver: HistoryEvent | null;
  readonly releases: Call[];
  readonly evictions: Call[];
  /** Calls about this attempt that have not ended. */
  readonly open: Call[];
}

/** A request that was granted. Its validity interval is the positions from ok.i up to, not including, end. */
export interface Grant {
  readonly attempt: Attempt;
  readonly proc: string;
  readonly token: bigint | undefined;
  readonly kind: GrantKind;
  readonly weight: number;
  readonly permits: number;
  readonly steal: boolean;
  readonly ok: HistoryEvent;
  /** For a nested entry, the attempt on whose strength it entered. */
  readonly parent: Attempt | null;
  /** For a nested entry, the grant that asked the store; null for that grant itself. */
  readonly root: Grant | null;
  /** On a root: how many entries are inside. */
  depth: number;
  /** What last set validUntil: the ok, or the last ok of a renewal. */
  proof: HistoryEvent;
  /** On a root: the release or loss that ended the whole hold. */
  closer: HistoryEvent | null;
  /** Where the holder stops believing. */
  believedEnd: number;
  /** Where validity ends: as believedEnd, or sooner where the lock was stolen or the entry evicted. */
  end: number;
}

/** All that happened on one lock name. */
export interface LockTrace {
  readonly name: string;
  readonly attempts: Attempt[];
  /** Grants that asked the store, in the order of their ok. */
  readonly grants: Grant[];
  /** Those of them that are exclusive. */
  readonly exclusive: Grant[];
  readonly queries: Call[];
  /** How many answers about its state were given: a busy try, a query. */
  answers: number;
  /** Somebody stole it or evicted an entry. */
  seized: boolean;
  highest: Grant | null;
}

/** A history, joined. All lists are in the order of events. */
export interface Trace {
  readonly events: readonly HistoryEvent[];
  readonly locks: ReadonlyMap<string, LockTrace>;
  readonly attempts: ReadonlyMap<string, Attempt>;
  /** All grants, nested ones too. */
  readonly grants: readonly Grant[];
  readonly writes: readonly Call[];
  readonly reads: readonly Call[];
  readonly held: readonly HistoryEvent[];
  readonly guarded: readonly HistoryEvent[];
  readonly faults: readonly Call[];
  readonly ends: readonly HistoryEvent[];
  /** Position at which a proc was killed. */
  readonly kills: ReadonlyMap<string, number>;
  /** Calls that never ended, faults aside. */
  readonly open: readonly Call[];
}

/** The grant that asked the store: the same one, unless it is nested. */
export function rootOf(grant: Grant): Grant {
  return grant.root ?? grant;
}

/** Whether an event was done by whoever made the attempt. */
export function isOwner(attempt: Attempt, event: HistoryEvent): boolean {
  return event.owner === undefined ? event.proc === attempt.call.invoke.proc : event.owner === attempt.owner;
}

/** The index of the first grant whose ok is at or after a position. */
export function firstFrom(grants: readonly Grant[], position: number): number {
  let low = 0;
  let high = grants.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((grants[middle]?.ok.i ?? Infinity) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A missing token comes first: whoever has one is later than it. */
export function compareTokens(a: bigint | undefined, b: bigint | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  if (b === undefined) return 1;
  return a < b ? -1 : 1;
}
