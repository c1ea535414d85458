/**
 * Judges a history: valid, invalid with the events that prove it, or unknown. Runs the checks of checks/ over one
 * trace; a history that is malformed or cut off is unknown, never valid.
 */
import { checkAnswers } from "./checks/answers.ts";
import type { Check, Findings, Invariant, Limits, Violation } from "./checks/check.ts";
import { checkExclusion } from "./checks/exclusion.ts";
import { checkFairness } from "./checks/fairness.ts";
import { checkHeld } from "./checks/held.ts";
import { checkEnded, checkLeaks, checkLives, checkWaits } from "./checks/liveness.ts";
import { checkReentry } from "./checks/reentry.ts";
import { checkGuard, checkTokens } from "./checks/tokens.ts";
import { checkUpdates } from "./checks/updates.ts";
import { HistoryError, type HistoryEvent } from "./history.ts";
import { parseHistory } from "./history-text.ts";
import type { Trace } from "./trace.ts";
import { traceHistory } from "./tracer.ts";

const CHECKS: Readonly<Record<Invariant, Check>> = {
  M1: checkExclusion,
  M2: checkTokens,
  M3: checkGuard,
  M4: checkUpdates,
  M5: checkReentry,
  M6: checkHeld,
  F1: checkFairness,
  L1: checkWaits,
  L2: checkLeaks,
  L3: checkEnded,
  L4: checkLives,
  A1: checkAnswers,
};

/** Every invariant, in the order in which they are judged. */
export const INVARIANTS: readonly Invariant[] = [
  "M1",
  "M2",
  "M3",
  "M4",
  "M5",
  "M6",
  "F1",
  "L1",
  "L2",
  "L3",
  "L4",
  "A1",
];

/** Which invariants a history must keep, and their parameters. */
export interface CheckOptions {
  /**
   * Those that are claimed: M1 only under the backend's timing assumptions, F1 and A1 only where it keeps arrival order.
   * @default all of them but L4; L1 only if waitMs is given
   */
  readonly invariants?: readonly Invariant[];
  /**
   * F1: how often a waiter may be overtaken.
   * @default 0
   */
  readonly overtakes?: number;
  /** L1: how long a waiter may go on waiting once the last fault is healed. */
  readonly waitMs?: number;
  /**
   * A1: how many steps the search may take for one lock before its answers count as unknown.
   * @default 200_000
   */
  readonly steps?: number;
  /**
   * How many violations of one invariant are reported.
   * @default 10
   */
  readonly limit?: number;
}

/** An invariant that was judged, and over how many grants, writes, calls … */
export interface Checked {
  readonly invariant: Invariant;
  readonly looked: number;
}

/** What a history proves. */
export interface CheckResult {
  readonly verdict: "valid" | "invalid" | "unknown";
  /** In the order in which they became certain. Empty unless invalid. */
  readonly violations: readonly Violation[];
  /** Why the verdict is not certain, or not as certain as it could be. */
  readonly doubts: readonly string[];
  readonly checked: readonly Checked[];
}

/** Judges a history. Never throws on one that makes no sense: that is unknown. */
export function checkHistory(events: readonly HistoryEvent[], options: CheckOptions = {}): CheckResult {
  let trace: Trace;
  try {
    trace = traceHistory(events);
  } catch (error) {
    if (error instanceof HistoryError) return unknown(error.message);
    throw error;
  }
  return checkTrace(trace, options);
}

/** Judges the text form of a history. */
export function checkText(text: string, options: CheckOptions = {}): CheckResult {
  let events: HistoryEvent[];
  try {
    events = parseHistory(text);
  } catch (error) {
    if (error instanceof HistoryError) return unknown(error.message);
    throw error;
  }
  return checkHistory(events, options);
}

function checkTrace(trace: Trace, options: CheckOptions): CheckResult {
  const claimed = options.invariants ?? usual(options);
  const limits: Limits = {
    overtakes: options.overtakes ?? 0,
    wait: BigInt(Math.round((options.waitMs ?? 0) * 1e6)),
    steps: options.steps ?? 200_000,
  };
  const violations: Violation[] = [];
  const doubts: string[] = [];
  const checked: Checked[] = [];
  for (const invariant of INVARIANTS) {
    if (!claimed.includes(invariant)) continue;
    if (invariant === "L1" && options.waitMs === undefined) {
      doubts.push("L1: no bound was given (waitMs).");
      continue;
    }
    const findings = new Collector(invariant, options.limit ?? 10);
    checked.push({ invariant, looked: CHECKS[invariant](trace, findings, limits) });
    violations.push(...findings.violations);
    doubts.push(...findings.doubts);
  }
  if (trace.events.at(-1)?.f !== "end")
    doubts.unshift("The history was cut off: its last event is not an end.");
  if (violations.length > 1) violations.sort((a, b) => lastPosition(a) - lastPosition(b));
  const verdict = violations.length > 0 ? "invalid" : doubts.length > 0 ? "unknown" : "valid";
  return { verdict, violations, doubts, checked };
}

/** A history need not say how long a ttl lasts or why a lock was lost, so L4 is judged only where somebody claims it. */
function usual({ waitMs }: CheckOptions): readonly Invariant[] {
  return INVARIANTS.filter((each) => each !== "L4" && (each !== "L1" || waitMs !== undefined));
}

class Collector implements Findings {
  readonly violations: Violation[] = [];
  readonly doubts: string[] = [];
  readonly #invariant: Invariant;
  readonly #limit: number;

  constructor(invariant: Invariant, limit: number) {
    this.#invariant = invariant;
    this.#limit = limit;
  }

  violate(message: string, events: readonly (HistoryEvent | null | undefined)[]): void {
    if (this.violations.length >= this.#limit) return;
    const proof = new Set(events.filter((event) => event !== null && event !== undefined));
    const inOrder = [...proof].toSorted((a, b) => a.i - b.i);
    this.violations.push({ invariant: this.#invariant, message, events: inOrder });
  }

  doubt(message: string): void {
    this.doubts.push(message);
  }
}

function unknown(why: string): CheckResult {
  return { verdict: "unknown", violations: [], doubts: [why], checked: [] };
}

function lastPosition({ events }: Violation): number {
  return events.at(-1)?.i ?? -1;
}
