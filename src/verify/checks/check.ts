/**
 * What every check has in common: the names of the invariants, what a check is given and what it gives back. The
 * checks themselves are beside this file, one per invariant or family; checker.ts runs them.
 */
import type { HistoryEvent } from "../history.ts";
import type { Trace } from "../trace.ts";

/**
 * What can be judged.
 *  - M1: validity intervals do not conflict. Holds under the timing assumptions of the backend.
 *  - M2: tokens of one lock are distinct and grow from grant to grant.
 *  - M3: the guarded resource never accepts a token below one it accepted before. Holds under no timing assumption.
 *  - M4: no acknowledged write is missing from the final read.
 *  - M5: a nested entry has its parent's token and happens inside it; only the owner releases, and once.
 *  - M6: `held === true` is seen only inside the observer's validity interval.
 *  - F1: nobody is overtaken more than a bounded number of times. For backends that keep arrival order.
 *  - L1: after the last fault is healed, each live waiter ends within a bound.
 *  - L2: nothing is left behind.
 *  - L3: every call ended.
 *  - L4: what is granted lasts: for most of the ttl that was asked for, and until the moment that its holder was told, unless
 *    it is stolen, evicted or met by a fault.
 *  - A1: answers about state (a busy try, a query) fit some order of what happened. For backends that keep arrival
 *    order; not judged on a lock that was stolen or evicted from.
 */
export type Invariant = "M1" | "M2" | "M3" | "M4" | "M5" | "M6" | "F1" | "L1" | "L2" | "L3" | "L4" | "A1";

/** One broken invariant. */
export interface Violation {
  readonly invariant: Invariant;
  /** One sentence for a person. */
  readonly message: string;
  /** The few events that prove it, in order. */
  readonly events: readonly HistoryEvent[];
}

/** The parameters of the checks. */
export interface Limits {
  /** F1: how often a waiter may be overtaken. */
  readonly overtakes: number;
  /** L1: how long a waiter may wait after the last fault, in nanoseconds. */
  readonly wait: bigint;
  /** A1: how many steps the search may take for one lock. */
  readonly steps: number;
}

/** Where a check puts what it finds. */
export interface Findings {
  /** Something is wrong, and these events prove it. */
  violate(message: string, events: readonly (HistoryEvent | null | undefined)[]): void;
  /** Something cannot be judged. */
  doubt(message: string): void;
}

/** Judges one invariant and gives how many things it looked at. */
export type Check = (trace: Trace, findings: Findings, limits: Limits) => number;
