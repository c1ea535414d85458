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
  const waivers = waiversOf(circumstances);
  const invariants = INVARIANTS.filter((each) => !calmOnly.includes(each));
  const whole = checkHistory(events, { invariants, waitMs, limit: many });
  // Where no queue is kept, what an attempt has left on some nodes may be in the way until its ttl is over.
  const unordered = circumstances.traits.order === "none";
  const leftoverMs = unordered ? (calmWaitMs / calmWaitTtls) * calmTtls : 0;
  const boundMs = calmWaitMs + leftoverMs;
  const calm = checkHistory(calmEvents, {
    invariants: unordered ? ["L1", "L4"] : ["A1", "L1", "L4"],
    waitMs: boundMs,
    steps: searchSteps,
    limit: many,
  });
  const slowness = slownessOf(beforeFaults(events), calmEvents);
  const calmViolations = calm.violations.filter((violation) => {
    if (violation.invariant === "L1") return !isExcused(violation, boundMs, slowness);
    return violation.invariant !== "L4" || !slowness.stalls.some((stood) => isDuring(violation, stood));
  });
  const violations = [...whole.violations, ...calmViolations];
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

/** What happened before anything was broken. */
function beforeFaults(events: readonly HistoryEvent[]): readonly HistoryEvent[] {
  const broken = events.findIndex(({ f, fault }) => f === "fault" && fault !== stall);
  return broken < 0 ? events : events.slice(0, broken);
}

/** A length of time in the record, of somebody. */
interface Span {
  readonly whose: string;
  readonly from: bigint;
  readonly until: bigint;
}

/** What the machine took its time for before anything was broken. */
interface Slowness {
  /** Where clients stood still. */
  readonly stalls: readonly Span[];
  /** Releases, from the request to the answer: a release waits for nobody. */
  readonly releases: readonly Span[];
  readonly losses: readonly Loss[];
}

/** A lock that its holder had while somebody stood still, and lost: it has not given it back by that. */
interface Loss {
  readonly lock: string | undefined;
  readonly at: bigint;
  readonly ttlMs: number;
}

function slownessOf(before: readonly HistoryEvent[], calmEvents: readonly HistoryEvent[]): Slowness {
  const stalls = before.filter(({ f }) => f === "fault");
  // Where it is not known what became of a release, other things were waited for, too.
  const releases = calmEvents.filter(({ f, type }) => f === "release" && type !== "info");
  const stood = spansOf(stalls, ({ target }) => target);
  return {
    stalls: stood,
    releases: spansOf(releases, ({ attempt }) => attempt),
    losses: lossesIn(calmEvents, stood),
  };
}

function lossesIn(events: readonly HistoryEvent[], stalls: readonly Span[]): readonly Loss[] {
  const asked = new Map<string | undefined, HistoryEvent>();
  return events.flatMap((event): readonly Loss[] => {
    const { f, t, attempt } = event;
    if (event.type === "invoke" && event.ttl !== undefined) asked.set(attempt, event);
    const ask = asked.get(attempt);
    if (f !== "lost" || ask?.ttl === undefined) return [];
    const stood = stalls.some((span) => span.from < t && span.until > ask.t);
    return stood ? [{ lock: ask.lock, at: t, ttlMs: ask.ttl }] : [];
  });
}

function spansOf(
  events: readonly HistoryEvent[],
  whoseOf: (event: HistoryEvent) => string | undefined,
): readonly Span[] {
  const begun = new Map<string, bigint>();
  return events.flatMap((event): readonly Span[] => {
    const whose = whoseOf(event) ?? "";
    const from = begun.get(whose);
    if (event.type === "invoke") begun.set(whose, event.t);
    return event.type === "invoke" || from === undefined ? [] : [{ whose, from, until: event.t }];
  });
}

/**
 * Whether a wait was too long because the machine was slow while it lasted: somebody stood still, or answers took their time. A
 * hand-over takes a few of these, and those before it in the queue take theirs. What somebody lost is in the way until its ttl is over.
 */
function isExcused(violation: Violation, boundMs: number, { stalls, releases, losses }: Slowness): boolean {
  const [from, until] = lengthOf(violation);
  const lock = violation.events[0]?.lock;
  const lost = losses.filter((loss) => loss.lock === lock && loss.at < until);
  const inTheWayMs = Math.max(0, ...lost.map(({ ttlMs }) => ttlMs));
  const during = (span: Span): boolean => isDuring(violation, span);
  const stalled = new Map<string, bigint>();
  for (const span of stalls.filter(during)) {
    const [begin, end] = [span.from > from ? span.from : from, span.until < until ? span.until : until];
    stalled.set(span.whose, (stalled.get(span.whose) ?? 0n) + end - begin);
  }
  const mostStalled = longest([...stalled.values()]);
  const slowest = longest(releases.filter(during).map((span) => span.until - span.from));
  return until - from <= BigInt(Math.round((boundMs + inTheWayMs) * 1e6)) + mostStalled + 5n * slowest;
}

/** From the first of its events to the last. */
function lengthOf({ events }: Violation): readonly [from: bigint, until: bigint] {
  return [events[0]?.t ?? 0n, events.at(-1)?.t ?? 0n];
}

/** Whether something happened while a violation lasted. */
function isDuring(violation: Violation, span: Span): boolean {
  const [from, until] = lengthOf(violation);
  return span.from < until && span.until > from;
}

function longest(spans: readonly bigint[]): bigint {
  return spans.reduce((most, span) => (span > most ? span : most), 0n);
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
