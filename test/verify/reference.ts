/**
 * The invariants written straight from their definitions, pair by pair and without any index: slow, and easy to read.
 * The checker must agree with it on small histories of any kind, right or wrong.
 */
import type { HistoryEvent } from "../../src/verify/history.ts";

/** A moment: a time, and the position among the events of that time; -1 is before them all. */
type Moment = readonly [t: bigint, i: number];

interface Interval {
  readonly invoke: HistoryEvent;
  readonly ok: HistoryEvent;
  readonly from: Moment;
  readonly until: Moment;
}

const NEVER: Moment = [2n ** 80n, 0];

const before = (a: Moment, b: Moment): boolean => a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
const momentOf = ({ t, i }: HistoryEvent): Moment => [t, i];
const earliest = (moments: readonly Moment[]): Moment =>
  moments.reduce((a, b) => (before(b, a) ? b : a), NEVER);

function intervals(events: readonly HistoryEvent[]): Interval[] {
  return events
    .filter(({ f, type }) => f === "acquire" && type === "ok")
    .flatMap((ok) => {
      const own = events.filter(({ attempt }) => attempt === ok.attempt);
      const invoke = own.find(({ f, type }) => f === "acquire" && type === "invoke");
      if (invoke === undefined) return [];
      const closed = earliest(
        own.filter(({ f, type }) => f === "lost" || (f === "release" && type === "invoke")).map(momentOf),
      );
      const renewed = own.filter(
        ({ f, type, t, i }) => f === "renew" && type === "ok" && before([t, i], closed),
      );
      const { validUntil } = renewed.at(-1) ?? ok;
      const expired: Moment = validUntil === undefined ? NEVER : [validUntil, -1];
      return [{ invoke, ok, from: momentOf(ok), until: earliest([closed, expired]) }];
    });
}

const kindOf = ({ invoke }: Interval): string =>
  invoke.permits === undefined ? (invoke.mode ?? "exclusive") : "counted";
const contains = ({ from, until }: Interval, moment: Moment): boolean =>
  !before(moment, from) && before(moment, until);
const sameLock = (a: Interval, b: Interval): boolean => a.invoke.lock === b.invoke.lock;
const conflict = (a: Interval, b: Interval): boolean => kindOf(a) !== kindOf(b) || kindOf(a) === "exclusive";
const tokenOf = ({ ok }: Interval): bigint => ok.token ?? 0n;

function pairs(events: readonly HistoryEvent[]): [Interval, Interval][] {
  const all = intervals(events);
  return all.flatMap((a) =>
    all.filter((b) => a !== b && sameLock(a, b)).map((b): [Interval, Interval] => [a, b]),
  );
}

/** Whether M1 is broken. */
export function breaksExclusion(events: readonly HistoryEvent[]): boolean {
  const overlap = pairs(events).some(
    ([a, b]) => conflict(a, b) && contains(a, b.from) && before(b.from, b.until) && before(a.from, a.until),
  );
  const all = intervals(events).filter((each) => kindOf(each) === "counted" && before(each.from, each.until));
  const overweight = all.some(({ from, invoke }) => {
    const active = all.filter((each) => each.invoke.lock === invoke.lock && contains(each, from));
    const weight = active.reduce((sum, each) => sum + (each.invoke.weight ?? 1), 0);
    return weight > Math.max(...active.map((each) => each.invoke.permits ?? 1));
  });
  return overlap || overweight;
}

/** Whether M2 is broken. */
export function breaksTokens(events: readonly HistoryEvent[]): boolean {
  return pairs(events).some(
    ([a, b]) => tokenOf(a) === tokenOf(b) || (a.ok.i < b.invoke.i && tokenOf(a) >= tokenOf(b)),
  );
}

/** Whether M3 is broken. */
export function breaksGuard(events: readonly HistoryEvent[]): boolean {
  const accepted = events.filter(({ f, type }) => f === "guard" && type === "ok");
  return accepted.some((a) =>
    accepted.some((b) => a.lock === b.lock && a.i < b.i && (a.token ?? 0n) > (b.token ?? 0n)),
  );
}

/** Whether M6 is broken. */
export function breaksHeld(events: readonly HistoryEvent[]): boolean {
  const all = intervals(events);
  return events
    .filter(({ f }) => f === "held")
    .some((seen) => {
      const own = all.find(({ ok }) => ok.attempt === seen.attempt && ok.i < seen.i);
      if (own === undefined || !contains(own, momentOf(seen))) return true;
      return all.some(
        (other) =>
          other !== own &&
          sameLock(own, other) &&
          kindOf(other) === "exclusive" &&
          before(other.from, other.until) &&
          own.ok.i < other.ok.i &&
          other.ok.i < seen.i,
      );
    });
}

/** How often the most overtaken waiter was overtaken; for exclusive and shared requests. */
export function mostOvertaken(events: readonly HistoryEvent[]): number {
  const all = intervals(events);
  const times = all.map(
    (waiter) =>
      all.filter(
        (other) =>
          sameLock(waiter, other) &&
          conflict(waiter, other) &&
          waiter.invoke.i < other.ok.i &&
          other.ok.i < waiter.ok.i &&
          // Later, the waiter may have held and expired without having heard of it.
          other.ok.t < (waiter.ok.validUntil ?? waiter.ok.t + 1n) &&
          tokenOf(other) > tokenOf(waiter),
      ).length,
  );
  return Math.max(0, ...times);
}
