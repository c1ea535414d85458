/**
 * Decides what the report draws and where: lanes, bars, marks, fault columns and overlap bands, in time and rows. Pixels
 * and colours are left to draw.ts.
 */
import type { Violation } from "../checks/check.ts";
import type { HistoryEvent } from "../history.ts";
import type { Attempt, Grant, Trace } from "../trace.ts";
import { endTime } from "../validity.ts";
import { describeAttempt, describeEvent, describeFault } from "./describe.ts";
import type { Bar, FaultColumn, Flag, Lane, Layout, Mark, MarkShape, Time } from "./scene.ts";

/** Lays out a history; where it has more operations than the limit, those around the first violation. */
export function layOut(trace: Trace, violations: readonly Violation[], limit: number): Layout {
  return new Planner(trace, violations).plan(limit);
}

class Planner {
  readonly #trace: Trace;
  readonly #violations: readonly Violation[];
  readonly #origin: bigint;
  readonly #end: Time;
  readonly #lanes = new Map<string, Lane>();
  readonly #bars = new Map<Attempt, Bar>();
  readonly #marks: Mark[] = [];

  constructor(trace: Trace, violations: readonly Violation[]) {
    this.#trace = trace;
    this.#violations = violations;
    this.#origin = trace.events[0]?.t ?? 0n;
    this.#end = this.#time(trace.events.at(-1)?.t ?? this.#origin);
  }

  plan(limit: number): Layout {
    const [low, high, operations] = this.#window(limit);
    const isShown = ({ i }: HistoryEvent): boolean => i >= low && i <= high;
    const guilty = new Set(
      this.#violations.slice(0, 1).flatMap(({ events }) => events.map(({ attempt }) => attempt)),
    );
    for (const attempt of this.#trace.attempts.values()) {
      if (isShown(attempt.call.invoke) || guilty.has(attempt.id)) this.#addBar(attempt);
    }
    this.#addMarks(isShown);
    for (const lane of this.#lanes.values()) packRows(lane, (attempt) => this.#bars.get(attempt));
    const whole = low <= 0 && high === Infinity;
    const times = [...this.#bars.values()].flatMap(({ from, until }) => [from, until]);
    const drawn = whole ? [0, this.#end] : [...times, ...this.#marks.map(({ at }) => at)];
    const from = drawn.reduce((a, b) => Math.min(a, b), Infinity);
    const until = drawn.reduce((a, b) => Math.max(a, b), -Infinity);
    const faults = this.#faults().filter((fault) => fault.until >= from && fault.from <= until);
    return {
      from,
      until,
      lanes: [...this.#lanes.values()],
      marks: this.#marks,
      faults,
      flags: this.#flags(isShown),
      locks: [...this.#trace.locks.keys()],
      operations,
      drawn: whole ? operations : this.#bars.size + this.#marks.filter(({ bar }) => bar === null).length,
    };
  }

  /** The positions between which operations are drawn, and how many operations there are in all. */
  #window(limit: number): readonly [low: number, high: number, operations: number] {
    const { attempts, guarded } = this.#trace;
    const starts = [...attempts.values()].map(({ call }) => call.invoke.i);
    const all = [...starts, ...guarded.map(({ i }) => i)].toSorted((a, b) => a - b);
    if (all.length <= limit) return [0, Infinity, all.length];
    const first = this.#violations[0]?.events.at(-1)?.i ?? 0;
    const middle = all.findIndex((i) => i >= first);
    const half = Math.floor(limit / 2);
    const start = Math.max(0, Math.min((middle < 0 ? all.length : middle) - half, all.length - limit));
    return [all[start] ?? 0, all[start + limit - 1] ?? 0, all.length];
  }

  #time(t: bigint): Time {
    return Number(t - this.#origin);
  }

  #lane(proc: string): Lane {
    let lane = this.#lanes.get(proc);
    if (lane === undefined) this.#lanes.set(proc, (lane = { proc, bars: [], rows: 1 }));
    return lane;
  }

  #addBar(attempt: Attempt): void {
    const { call, grant } = attempt;
    const lane = this.#lane(call.invoke.proc);
    const killed = this.#trace.events[this.#trace.kills.get(call.invoke.proc) ?? -1];
    const ended =
      call.end === null
        ? this.#time(killed?.t ?? this.#trace.events.at(-1)?.t ?? 0n)
        : this.#time(call.end.t);
    const until = grant === null ? ended : Math.max(ended, Math.min(this.#end, this.#endOf(grant)));
    const bar: Bar = {
      attempt,
      lane,
      row: 0,
      from: this.#time(call.invoke.t),
      granted: grant === null ? null : this.#time(grant.ok.t),
      until,
      outcome: outcomeOf(attempt),
      tip: describeAttempt(attempt, this.#origin, this.#origin + BigInt(Math.round(until))),
    };
    lane.bars.push(bar);
    this.#bars.set(attempt, bar);
  }

  /** What people see as its end is when the holder stops believing, stolen or not. */
  #endOf(grant: Grant): Time {
    return this.#time(endTime(this.#trace, grant));
  }

  #addMarks(isShown: (event: HistoryEvent) => boolean): void {
    const stale = new Set(
      this.#violations.flatMap(({ invariant, events }) => (invariant === "M3" ? events.slice(-1) : [])),
    );
    for (const event of this.#trace.events) {
      const shape = shapeOf(event, stale);
      if (shape === null || !isShown(event)) continue;
      const attempt = event.attempt === undefined ? undefined : this.#trace.attempts.get(event.attempt);
      const bar = event.f === "guard" || attempt === undefined ? null : (this.#bars.get(attempt) ?? null);
      const lane = bar?.lane ?? this.#lane(event.proc);
      this.#marks.push({
        shape,
        at: this.#time(event.t),
        lane,
        bar,
        tip: describeEvent(event, this.#origin),
      });
    }
  }

  #faults(): FaultColumn[] {
    return this.#trace.faults.map((fault) => {
      const { fault: kind = "fault", target = "" } = fault.invoke;
      return {
        from: this.#time(fault.invoke.t),
        until: fault.end === null ? this.#end : this.#time(fault.end.t),
        label: `${kind} ${target}`.trim(),
        lane: this.#lanes.get(target) ?? null,
        tip: describeFault(fault, this.#origin),
      };
    });
  }

  #flags(isShown: (event: HistoryEvent) => boolean): Flag[] {
    return this.#violations.flatMap(({ invariant, message, events }, at): Flag[] => {
      if (at > 0 && !events.some(isShown)) return [];
      const points = events.flatMap((event) => {
        const attempt = event.attempt === undefined ? undefined : this.#trace.attempts.get(event.attempt);
        const bar = event.f === "guard" || attempt === undefined ? null : (this.#bars.get(attempt) ?? null);
        const lane = bar?.lane ?? this.#lanes.get(event.proc);
        return lane === undefined ? [] : [{ at: this.#time(event.t), lane, bar }];
      });
      const times = events.map(({ t }) => this.#time(t));
      const bars = new Set(points.flatMap(({ bar }) => (bar === null || bar.granted === null ? [] : [bar])));
      const from = Math.max(...[...bars].map(({ granted }) => granted ?? 0));
      const until = Math.min(...[...bars].map((bar) => bar.until));
      const overlap = invariant === "M1" && bars.size > 1 ? { from, until, bars: [...bars] } : null;
      return [
        { number: at + 1, from: Math.min(...times), until: Math.max(...times), overlap, points, message },
      ];
    });
  }
}

function outcomeOf({ call, grant }: Attempt): Bar["outcome"] {
  if (grant !== null) return "granted";
  if (call.end === null) return "open";
  return call.end.type === "fail" || call.end.type === "info" ? call.end.type : "busy";
}

function shapeOf(event: HistoryEvent, stale: ReadonlySet<HistoryEvent>): MarkShape | null {
  if (event.f === "guard") return stale.has(event) ? "stale" : event.type === "ok" ? "accepted" : "refused";
  if (event.f === "renew" && event.type === "ok") return "renewed";
  if (event.f === "lost") return "lost";
  if (event.f === "query" && event.type === "ok") return "query";
  return null;
}

/** Puts each bar into the first row that is free by then; a nested entry goes where its hold is. */
function packRows(lane: Lane, barOf: (attempt: Attempt) => Bar | undefined): void {
  const ends: Time[] = [];
  lane.bars.sort((a, b) => a.from - b.from);
  for (const bar of lane.bars) {
    const { grant } = bar.attempt;
    const outer = grant?.root ? barOf(grant.root.attempt) : undefined;
    if (outer !== undefined && outer.lane === lane) {
      bar.row = outer.row;
      continue;
    }
    const free = ends.findIndex((end) => end <= bar.from);
    bar.row = free < 0 ? ends.length : free;
    ends[bar.row] = bar.until;
  }
  lane.rows = Math.max(1, ends.length);
}
