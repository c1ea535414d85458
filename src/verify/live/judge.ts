/** Judges the history of a run: what the store promises must hold; what it does not promise is counted and shown all the same. */
import type { Fault, Traits } from "../../core/backend.ts";
import { checkHistory, type CheckResult, INVARIANTS } from "../checker.ts";
import type { Invariant, Violation } from "../checks/check.ts";
import { type HistoryEvent, renumber } from "../history.ts";
import { stall } from "./observer.ts";
import { calmMark, calmTtls, calmWaitTtls, echoMark } from "./stories/story.ts";

/** What happened, as far as promises depend on it. */
export interface Circumstances {
  readonly traits: Traits;
  /** Faults of the store. */
  readonly suffered: ReadonlySet<Fault>;
  /** Requests were executed twice. */
  readonly replayed: boolean;
  /** Why answers about state need not be exact; null if they are. */
  readonly looseAnswers: string | null;
  /** How long a waiter may wait once all is healed. */
  readonly waitMs: number;
  /** How long one may wait in the calm opening. */
  readonly calmWaitMs: number;
}

/** One invariant, judged. */
export interface Row {
  readonly invariant: Invariant;
  readonly looked: number;
  readonly found: number;
  /** Why it is not promised here; null if it is. */
  readonly waived: string | null;
}

/** What came out. */
export interface Judgement {
  readonly rows: readonly Row[];
  /** All violations, those of promises that were not made too; the verdict is about the others. */
  readonly result: CheckResult;
}

const many = 1_000_000;

/** What is judged in the calm opening only. */
const calmOnly: readonly Invariant[] = ["L4", "A1"];

/** How long the search for an order of what happened in the calm opening may be, for one name of some forty calls. */
const searchSteps = 30_000;

/** Judges a history. */
export function judge(events: readonly HistoryEvent[], circumstances: Circumstances): Judgement {
  const { waitMs, calmWaitMs } = circumstances;
  const calmEvents = calmPart(events);
  const paceMs = slowestReleaseMs(calmEvents);
  const waivers = waiversOf(circumstances);
  const invariants = INVARIANTS.filter((each) => !calmOnly.includes(each));
  const whole = checkHistory(events, { invariants, waitMs, limit: many });
  const stalls = beforeFaults(events).filter(({ f }) => f === "fault");
  // Where no queue is kept, what an attempt has left on some nodes may be in the way until its ttl is over.
  const unordered = circumstances.traits.order === "none";
  const leftoverMs = unordered ? (calmWaitMs / calmWaitTtls) * calmTtls : 0;
  const calm = checkHistory(calmEvents, {
    invariants: unordered ? ["L1", "L4"] : ["A1", "L1", "L4"],
    // A hand-over takes a few answers, and those before it in the queue take theirs.
    waitMs: calmWaitMs + leftoverMs + mostStalledMs(stalls) + 5 * paceMs,
    steps: searchSteps,
    limit: many,
  });
  const violations = [...whole.violations, ...calm.violations];
  const checked = [...whole.checked, ...calm.checked.filter(({ invariant }) => calmOnly.includes(invariant))];
  const rows = checked.map(({ invariant, looked }): Row => {
    const found = violations.filter((violation) => violation.invariant === invariant).length;
    return { invariant, looked, found, waived: waivers.get(invariant) ?? null };
  });
  const doubts = [...whole.doubts, ...calm.doubts];
  if (!rows.some(({ invariant, looked }) => invariant === "M1" && looked > 0)) {
    doubts.push("Nothing was granted, so that nothing was shown.");
  }
  const broken = violations.some(({ invariant }) => !waivers.has(invariant));
  const verdict = broken ? "invalid" : doubts.length > 0 ? "unknown" : "valid";
  return { rows, result: { verdict, violations, doubts, checked } };
}

/** A judgement with violations and doubts that the history alone does not show. */
export function withMore(
  { rows, result }: Judgement,
  violations: readonly Violation[],
  doubts: readonly string[],
): Judgement {
  const counted = rows.map((row) => ({
    ...row,
    found: row.found + violations.filter(({ invariant }) => invariant === row.invariant).length,
  }));
  const worse = violations.length > 0 ? "invalid" : doubts.length > 0 ? "unknown" : result.verdict;
  return {
    rows: counted,
    result: {
      ...result,
      verdict: result.verdict === "invalid" ? "invalid" : worse,
      violations: [...result.violations, ...violations],
      doubts: [...result.doubts, ...doubts],
    },
  };
}

/** What is not promised, and why. */
function waiversOf({
  traits,
  suffered,
  replayed,
  looseAnswers,
}: Circumstances): ReadonlyMap<Invariant, string> {
  const waivers = new Map<Invariant, string>();
  const waive = (why: string, ...invariants: readonly Invariant[]): void => {
    for (const invariant of invariants) waivers.set(invariant, why);
  };
  if (replayed) waive("a request that came twice may leave an entry that is released later", "M5");
  if (looseAnswers !== null) waive(looseAnswers, "A1");
  if (traits.order === "none") waive("the store keeps no order", "F1", "A1");
  const apart = traits.exclusivityBrokenBy.filter((fault) => suffered.has(fault));
  if (apart.length > 0) waive(`not promised after ${apart.join(", ")}`, "M1", "M5", "M6", "F1");
  const back = traits.tokensRegressAfter.filter((fault) => suffered.has(fault));
  if (back.length > 0) waive(`not promised after ${back.join(", ")}`, "M2", "M4", "F1");
  return waivers;
}

/** How long the slowest answer to a release took, in milliseconds: a release waits for nobody. */
function slowestReleaseMs(events: readonly HistoryEvent[]): number {
  const begun = new Map<string | undefined, bigint>();
  let slowest = 0n;
  for (const { f, t, type, attempt } of events) {
    // Where it is not known what became of it, other things were waited for, too.
    if (f !== "release" || type === "info") continue;
    if (type === "invoke") begun.set(attempt, t);
    const took = t - (begun.get(attempt) ?? t);
    if (took > slowest) slowest = took;
  }
  return Number(slowest / 1_000_000n);
}

/** What happened before anything was broken. */
function beforeFaults(events: readonly HistoryEvent[]): readonly HistoryEvent[] {
  const broken = events.findIndex(({ f, fault }) => f === "fault" && fault !== stall);
  return broken < 0 ? events : events.slice(0, broken);
}

/** How long the client that stalled most stood still, in milliseconds. */
function mostStalledMs(stalls: readonly HistoryEvent[]): number {
  const begun = new Map<string | undefined, bigint>();
  const sums = new Map<string | undefined, bigint>();
  for (const { t, type, target } of stalls) {
    if (type === "invoke") begun.set(target, t);
    else sums.set(target, (sums.get(target) ?? 0n) + t - (begun.get(target) ?? t));
  }
  return Math.max(0, ...[...sums.values()].map((sum) => Number(sum / 1_000_000n)));
}

/**
 * All that happened on the locks of the calm opening, but for those whose requests may have come twice. It ends with the first fault,
 * even if somebody still waits then: nobody knows for how long that would have been.
 */
function calmPart(events: readonly HistoryEvent[]): readonly HistoryEvent[] {
  const attempts = new Set<string>();
  const calm = beforeFaults(events);
  const part = calm.filter(({ f, lock, attempt }) => {
    if (lock?.includes(calmMark) === true && !lock.includes(echoMark)) {
      if (attempt !== undefined) attempts.add(attempt);
      return true;
    }
    return f === "end" || (attempt !== undefined && attempts.has(attempt));
  });
  const [first, last] = [events[calm.length], events.at(-1)];
  if (first !== undefined && last?.f === "end") part.push({ ...last, t: first.t });
  return renumber(part);
}
