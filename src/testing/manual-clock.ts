/** A clock that moves only when told: whole tests of waiting and expiry without a sleep. */
import { type Clock, largerProgress, type Timer } from "../core/clock.ts";

interface Alarm {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A manual clock. Timers run in the order of their moments, those of one moment in the order in which they were set. */
export class ManualClock implements Clock {
  #monotonicMs = 0;
  #wallMs: number;
  #orders = 0;
  readonly #alarms = new Set<Alarm>();
  readonly #progress: () => number;

  constructor(wallMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallMs = wallMs;
    this.#progress = largerProgress(
      () => this.#monotonicMs,
      () => this.#wallMs,
    );
  }

  now(): number {
    return this.#progress();
  }

  recent(): number {
    return this.#progress();
  }

  wallMs(): number {
    return this.#wallMs;
  }

  after(ms: number, callback: () => void): Timer {
    const alarm: Alarm = { at: this.#monotonicMs + Math.max(0, ms), order: this.#orders++, callback };
    this.#alarms.add(alarm);
    return { cancel: () => this.#alarms.delete(alarm) };
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#alarms.size;
  }

  /** When the next timer is due, in milliseconds from now; null if none is set. */
  get nextTimerInMs(): number | null {
    const next = this.#next();
    return next === null ? null : Math.max(0, next.at - this.#monotonicMs);
  }

  /** Moves both clocks, runs the timers that are due, and lets everything settle after each. */
  async advance(ms: number): Promise<void> {
    const until = this.#monotonicMs + ms;
    await settle();
    for (let alarm = this.#next(); alarm !== null && alarm.at <= until; alarm = this.#next()) {
      this.#move(Math.max(0, alarm.at - this.#monotonicMs));
      this.#alarms.delete(alarm);
      alarm.callback();
      await settle();
    }
    this.#move(until - this.#monotonicMs);
    await settle();
  }

  /** Moves both clocks without running any timer: the event loop was blocked, or the process stopped. */
  block(ms: number): void {
    this.#move(ms);
  }

  /** Steps the wall clock alone: the machine was suspended, or somebody set its clock. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  #next(): Alarm | null {
    let next: Alarm | null = null;
    for (const alarm of this.#alarms) {
      if (next === null || alarm.at < next.at || (alarm.at === next.at && alarm.order < next.order))
        next = alarm;
    }
    return next;
  }
}

/** Lets all promises that can settle without time passing do so. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
