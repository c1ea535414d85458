/** Time and chance as the core sees them: injected, so that the whole core runs under a manual clock and a seed. */

import { performance } from "node:perf_hooks";

/** A timer that has been set. */
export interface Timer {
  cancel(): void;
}

/** What the core may ask about time. */
export interface Clock {
  /**
   * Milliseconds that have passed since some fixed moment: never back, and never less than either the monotonic or the
   * wall clock has moved, so that a machine that was suspended does not look alive.
   */
  now(): number;
  /**
   * The last reading of now() in this turn of the event loop, or a new one: never later than now(), and cheap. Where the turn takes
   * long it is old, and what counts from it ends early: good for what is believed, not for how long somebody waits.
   */
  recent(): number;
  /** Milliseconds since 1970 by the wall clock: for people and for seeds, never for a deadline. */
  wallMs(): number;
  /** Calls back once, not before `ms` have passed; never keeps the process alive. */
  after(ms: number, callback: () => void): Timer;
}

/** A source of chance: fractions in [0, 1), as Math.random gives them. */
export type Random = () => number;

/** The longest delay that setTimeout takes; it fires at once on a longer one. */
const longestTimerMs: number = 2 ** 31 - 1;

/** After so many readings the turns of the event loop are told apart: that costs as much as some of them, and another turn. */
const fewReadings = 64;

/** Steps of the wall clock up to this are taken for slewing and rounding. */
export const slewMs = 5;

/** Reads two clocks and gives the larger progress of the two. */
export function largerProgress(monotonicMs: () => number, wallMs: () => number): () => number {
  let offset = wallMs() - monotonicMs();
  let jumped = 0;
  return () => {
    let monotonic = monotonicMs();
    let step = wallMs() - monotonic - offset;
    if (step > slewMs || step < -slewMs) {
      // A pause between the two readings looks like a step, too: read again until there was none.
      for (let tries = 0; tries < 10; tries++) {
        const before = monotonicMs();
        const wall = wallMs();
        monotonic = monotonicMs();
        step = wall - monotonic - offset;
        if (monotonic - before < slewMs / 2) break;
      }
      if (step > slewMs) jumped += step;
      if (step > slewMs || step < -slewMs) offset += step;
    }
    return monotonic + jumped;
  };
}

/**
 * As clock.after, but once what has arrived by then has been read: after a pause of ours timers come before bytes. It calls back with
 * the moment up to which all has been read. For answers that are waited for, never for what is believed.
 */
export function afterReading(clock: Clock, ms: number, callback: (readUpTo: number) => void): Timer {
  let reading: NodeJS.Immediate | undefined;
  const timer = clock.after(ms, () => {
    reading = setImmediate(callback, clock.now());
  });
  return {
    cancel: () => {
      timer.cancel();
      clearImmediate(reading);
    },
  };
}

/** The clocks and timers of this process. */
export const systemClock: Clock = makeSystemClock();

function makeSystemClock(): Clock {
  const read = largerProgress(
    () => performance.now(),
    () => Date.now(),
  );
  let recent = 0;
  let fresh = false;
  let readings = 0;
  const outdate = (): void => {
    fresh = false;
    readings = 0;
  };
  return {
    now() {
      recent = read();
      if (!fresh && ++readings > fewReadings) {
        fresh = true;
        // Not unref'd: the loop would sleep first, and a reading from before the sleep would pass for a recent one.
        setImmediate(outdate);
      }
      return recent;
    },
    recent() {
      return fresh ? recent : this.now();
    },
    wallMs: () => Date.now(),
    after(ms, callback) {
      let timer: NodeJS.Timeout;
      const set = (leftMs: number): void => {
        const stepMs = Math.min(leftMs, longestTimerMs);
        timer = setTimeout(leftMs > stepMs ? () => set(leftMs - stepMs) : callback, stepMs);
        timer.unref();
      };
      set(Math.max(0, ms));
      return { cancel: () => clearTimeout(timer) };
    },
  };
}
