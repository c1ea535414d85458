/**
 * Single changes that turn a correct history into one that breaks a given invariant. Each gives null where the history
 * has no place for it.
 */
import type { Invariant } from "../../src/verify/checks/check.ts";
import { renumber, type HistoryEvent, type NewEvent } from "../../src/verify/history.ts";
import type { Grant, Trace } from "../../src/verify/trace.ts";
import { traceHistory } from "../../src/verify/tracer.ts";
import type { Random } from "./random.ts";

export interface Mutation {
  readonly name: string;
  readonly breaks: Invariant;
  readonly apply: (events: readonly HistoryEvent[], random: Random) => HistoryEvent[] | null;
}

type Events = readonly HistoryEvent[];

const change = (events: Events, changes: ReadonlyMap<HistoryEvent, Partial<HistoryEvent>>): HistoryEvent[] =>
  events.map((event) => ({ ...event, ...changes.get(event) }));

const drop = (events: Events, gone: (event: HistoryEvent) => boolean): HistoryEvent[] =>
  renumber(events.filter((event) => !gone(event)));

/** Inserts events after a position, at its moment. */
function insert(events: Events, after: number, ...added: readonly NewEvent[]): HistoryEvent[] {
  const t = events[after]?.t ?? 0n;
  const fresh = added.map((event, at): HistoryEvent => ({ i: at, t, ...event }));
  return renumber([...events.slice(0, after + 1), ...fresh, ...events.slice(after + 1)]);
}

/** A random pair of grants of one lock that fits. */
function pickPair(
  trace: Trace,
  random: Random,
  fits: (a: Grant, b: Grant) => boolean,
): readonly [Grant, Grant] | null {
  const pairs = [...trace.locks.values()].flatMap(({ grants }) =>
    grants.flatMap((a) => grants.filter((b) => a !== b && fits(a, b)).map((b) => [a, b] as const)),
  );
  return pairs.length === 0 ? null : random.pick(pairs);
}

function pickEvent(
  events: Events,
  random: Random,
  fits: (event: HistoryEvent) => boolean,
): HistoryEvent | null {
  const found = events.filter(fits);
  return found.length === 0 ? null : random.pick(found);
}

const swapTokens = (events: Events, [a, b]: readonly [Grant, Grant]): HistoryEvent[] =>
  change(
    events,
    new Map([
      [a.ok, { token: b.token }],
      [b.ok, { token: a.token }],
    ]),
  );

export const mutations: readonly Mutation[] = [
  {
    name: "a holder believes until somebody else is granted",
    breaks: "M1",
    apply(events, random) {
      const pair = pickPair(
        traceHistory(events),
        random,
        (a, b) => a.kind === "exclusive" && a.ok.i < b.ok.i,
      );
      if (pair === null) return null;
      const [{ attempt, ok }, { ok: next }] = pair;
      const longer = events.map((event) =>
        event.attempt === attempt.id && event.validUntil !== undefined
          ? { ...event, validUntil: next.t + 1n }
          : event,
      );
      return drop(
        longer,
        ({ f, attempt: id, i }) => id === attempt.id && i > ok.i && (f === "lost" || f === "release"),
      );
    },
  },
  {
    name: "tokens of two grants, one after the other, are swapped",
    breaks: "M2",
    apply(events, random) {
      const trace = traceHistory(events);
      const pair = pickPair(trace, random, (a, b) => a.ok.i < b.attempt.call.invoke.i);
      return pair === null ? null : swapTokens(events, pair);
    },
  },
  {
    name: "a token is given twice",
    breaks: "M2",
    apply(events, random) {
      const pair = pickPair(traceHistory(events), random, () => true);
      return pair === null ? null : change(events, new Map([[pair[0].ok, { token: pair[1].token }]]));
    },
  },
  {
    name: "the resource accepts a write that it refused",
    breaks: "M3",
    apply(events, random) {
      const refused = pickEvent(events, random, ({ f, type }) => f === "guard" && type === "fail");
      return refused === null ? null : change(events, new Map([[refused, { type: "ok" }]]));
    },
  },
  {
    name: "an acknowledged value is missing at the end",
    breaks: "M4",
    apply(events, random) {
      const read = events.find(({ f, type }) => f === "read" && type === "ok");
      const lost = pickEvent(events, random, ({ f, type }) => f === "write" && type === "ok");
      if (lost === null || read === undefined) return null;
      return change(
        events,
        new Map([[read, { values: read.values?.filter((value) => value !== lost.value) }]]),
      );
    },
  },
  {
    name: "somebody else releases",
    breaks: "M5",
    apply(events, random) {
      const ok = pickEvent(events, random, ({ f, type }) => f === "release" && type === "ok");
      if (ok === null) return null;
      return events.map((event) =>
        event.f === "release" && event.attempt === ok.attempt ? { ...event, proc: "intruder" } : event,
      );
    },
  },
  {
    name: "a nested entry has a token of its own",
    breaks: "M5",
    apply(events, random) {
      const nested = pickEvent(events, random, ({ parent }) => parent !== undefined);
      return nested === null
        ? null
        : change(events, new Map([[nested, { token: (nested.token ?? 0n) + 1n }]]));
    },
  },
  {
    name: "a lock is seen as held after its release",
    breaks: "M6",
    apply(events, random) {
      const left = pickEvent(
        events,
        random,
        ({ f, type }) => f === "lost" || (f === "release" && type === "invoke"),
      );
      if (left === null) return null;
      return insert(events, left.i, { proc: left.proc, f: "held", type: "ok", attempt: left.attempt });
    },
  },
  {
    name: "tokens of two grants that waited together are swapped",
    breaks: "F1",
    apply(events, random) {
      const pair = pickPair(
        traceHistory(events),
        random,
        (a, b) =>
          (a.kind === "exclusive" || b.kind === "exclusive") &&
          a.ok.i < b.ok.i &&
          b.attempt.call.invoke.i < a.ok.i,
      );
      return pair === null ? null : swapTokens(events, pair);
    },
  },
  {
    name: "an entry is left behind",
    breaks: "L2",
    apply: (events) =>
      events.map((event) => (event.f === "end" ? { ...event, leaks: { entries: 1 } } : event)),
  },
  {
    name: "a call is never answered",
    breaks: "L3",
    apply(events, random) {
      const end = pickEvent(events, random, ({ f, type }) => f === "release" && type !== "invoke");
      return end === null ? null : drop(events, (event) => event === end);
    },
  },
  {
    name: "a free lock is called busy",
    breaks: "A1",
    apply(events, random) {
      const { locks } = traceHistory(events);
      const free = [...locks.values()].filter(({ attempts }) =>
        attempts.every(
          ({ call, releases }) => call.end?.busy === true || releases.some(({ end }) => end?.type === "ok"),
        ),
      );
      const read = events.findIndex(({ f }) => f === "read");
      if (free.length === 0) return null;
      const about = { proc: "late", f: "try", attempt: "late" } as const;
      const { name } = random.pick(free);
      return insert(
        events,
        read - 1,
        { ...about, type: "invoke", lock: name },
        { ...about, type: "ok", busy: true },
      );
    },
  },
  {
    name: "a listing shows the holder as waiting",
    breaks: "A1",
    apply(events, random) {
      const seen = pickEvent(events, random, ({ f, holders, waiters }) => {
        return f === "query" && holders?.length === 1 && waiters?.length === 0;
      });
      if (seen === null) return null;
      return change(events, new Map([[seen, { holders: [], waiters: seen.holders }]]));
    },
  },
];
