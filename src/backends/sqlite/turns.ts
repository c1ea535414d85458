/** Lets calls on one connection take place in the order in which they were made, and again while other processes write. */
import type { Answer } from "../../core/backend.ts";

interface Turn {
  readonly attempt: () => void;
  readonly giveUp: (error: unknown) => void;
  readonly until: number;
}

/** How long the turns that have piled up may keep the event loop at a time, in milliseconds. */
const sliceMs = 5;

/** How often a turn is tried again without a pause: others are done within a fraction of a millisecond, mostly. */
const soonTries = 4;

/** The longest pause before a turn is tried again after that, in milliseconds. */
const pauseMs = 2;

/** One line of calls. */
export class Turns {
  readonly #isBusy: (error: unknown) => boolean;
  readonly #patienceMs: number;
  readonly #tooBusy: (cause: unknown) => unknown;
  readonly #waiting: Turn[] = [];
  #onIdle: Array<() => void> = [];
  /** How often the first in line has been tried again. */
  #tries = 0;

  /** @param tooBusy what a turn fails with that was tried for so long in vain */
  constructor(patienceMs: number, isBusy: (error: unknown) => boolean, tooBusy: (cause: unknown) => unknown) {
    this.#patienceMs = patienceMs;
    this.#tooBusy = tooBusy;
    this.#isBusy = isBusy;
  }

  /**
   * Does the work now and answers at once; or, while the file is busy or others wait, later. The work must be one that
   * a busy file stops before it has done anything.
   */
  take<T>(work: () => T): Answer<T> {
    if (this.#waiting.length === 0) {
      try {
        return work();
      } catch (error) {
        if (!this.#isBusy(error)) throw error;
      }
    }
    return new Promise<T>((resolve, reject) => {
      const until = performance.now() + this.#patienceMs;
      this.#waiting.push({ attempt: () => resolve(work()), giveUp: reject, until });
      if (this.#waiting.length === 1) this.#pause();
    });
  }

  /** Resolves when nobody waits any more. */
  idle(): Promise<void> {
    if (this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
    });
  }

  // The timers here keep the process alive: somebody waits for an answer that is a matter of milliseconds.
  #pause(): void {
    if (++this.#tries <= soonTries) setImmediate(() => this.#go());
    else setTimeout(() => this.#go(), Math.random() * pauseMs);
  }

  #go(): void {
    const startedAt = performance.now();
    for (;;) {
      const [turn] = this.#waiting;
      if (turn === undefined) break;
      const now = performance.now();
      if (now - startedAt > sliceMs) return void setImmediate(() => this.#go());
      try {
        turn.attempt();
      } catch (error) {
        if (this.#isBusy(error) && now < turn.until) return this.#pause();
        turn.giveUp(this.#isBusy(error) ? this.#tooBusy(error) : error);
      }
      this.#waiting.shift();
      this.#tries = 0;
    }
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
