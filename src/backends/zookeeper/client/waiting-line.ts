/** Requests that wait for a connection, in order, each for a bounded time. Sending them is left to the link. */
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Asked } from "./connection.ts";
import { connectionLoss, type ZooError } from "./errors.ts";

interface Waiting {
  readonly asked: Asked;
  readonly until: number;
}

/** How many requests may wait. */
const mostWaiting = 100_000;

/** Keeps requests until they are taken, fail, or have waited for too long. */
export class WaitingLine {
  /** Why there is no connection, for those who have waited in vain. */
  lastFailure: unknown = undefined;
  readonly #clock: Clock;
  readonly #reachMs: number;
  #waiting: Waiting[] = [];
  #timer: Timer | null = null;

  constructor(clock: Clock, reachMs: number) {
    this.#clock = clock;
    this.#reachMs = reachMs;
  }

  get length(): number {
    return this.#waiting.length;
  }

  add(asked: Asked): void {
    if (this.#waiting.length >= mostWaiting) return asked.fail(connectionLoss(true, this.lastFailure));
    this.#waiting.push({ asked, until: this.#clock.now() + this.#reachMs });
    this.#timer ??= this.#clock.after(this.#reachMs, () => this.#expire());
  }

  /** Gives all, in order, and is empty. */
  take(): readonly Asked[] {
    const all = this.#waiting.map(({ asked }) => asked);
    this.#waiting = [];
    this.#timer?.cancel();
    this.#timer = null;
    return all;
  }

  fail(error: ZooError): void {
    for (const asked of this.take()) asked.fail(error);
  }

  #expire(): void {
    const now = this.#clock.now();
    this.#timer = null;
    while (this.#waiting[0] !== undefined && this.#waiting[0].until <= now) {
      this.#waiting.shift()?.asked.fail(connectionLoss(true, this.lastFailure));
    }
    const [next] = this.#waiting;
    if (next !== undefined) this.#timer = this.#clock.after(next.until - now, () => this.#expire());
  }
}
