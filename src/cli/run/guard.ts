/**
 * Ends a command before its lock can be anybody else's: SIGTERM when the time until the deadline is only as long as the
 * grace, SIGKILL a reserve before the deadline, and SIGKILL at once when the lock is surely lost. How to signal is left
 * to the group, and what to say to the caller.
 */

/** What is known of the lock. */
export interface Held {
  /** For how long holding stays certain if no renewal succeeds, in milliseconds. */
  readonly validForMs: number;
  /** Aborts when holding is no longer certain. */
  readonly signal: AbortSignal;
}

/** What can be signalled. */
export interface Target {
  signal(name: "SIGTERM" | "SIGKILL"): void;
}

/** How much time there is for what, in milliseconds. */
export interface Plan {
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** Between SIGKILL and the deadline: covers a late timer and the time that dying takes. */
  readonly reserveMs: number;
}

/** Calls back once after so many milliseconds; gives the function that cancels it. */
export type After = (ms: number, callback: () => void) => () => void;

const realAfter: After = (ms, callback) => {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
};

/** How often the lock is looked at, at least: timers do not count the time for which a machine was suspended. */
const lookMs = 500;

/** Watches one lock for one command. */
export class Guard {
  readonly #lock: Held;
  readonly #target: Target;
  readonly #plan: Plan;
  readonly #after: After;
  readonly #onTerm: () => void;
  #cancelLook: (() => void) | null = null;
  #cancelKill: (() => void) | null = null;
  #state: "watching" | "terminated" | "killed" | "stopped" = "watching";
  #sent: "SIGTERM" | "SIGKILL" | null = null;
  readonly #aborted = (): void => this.check();

  /** Starts to watch. `onTerm` is called when SIGTERM was sent with some grace. */
  constructor(lock: Held, target: Target, plan: Plan, onTerm: () => void, after: After = realAfter) {
    this.#lock = lock;
    this.#target = target;
    this.#plan = plan;
    this.#onTerm = onTerm;
    this.#after = after;
    lock.signal.addEventListener("abort", this.#aborted);
    this.check();
  }

  /** The strongest signal that was sent, or null while the lock is well. */
  get sent(): "SIGTERM" | "SIGKILL" | null {
    return this.#sent;
  }

  /** Looks at the clock and does what is due. Call it too when this process may have been stopped. */
  check(): void {
    if (this.#state === "killed" || this.#state === "stopped") return;
    const leftMs = this.#lock.signal.aborted ? 0 : this.#lock.validForMs - this.#plan.reserveMs;
    if (leftMs <= 0) return this.#kill();
    this.#cancelLook?.();
    // Whoever was told to end is not told to go on if a renewal succeeds after all.
    if (this.#state === "terminated") return this.#lookAfter(leftMs);
    if (leftMs > this.#plan.graceMs) return this.#lookAfter(leftMs - this.#plan.graceMs);
    this.#state = "terminated";
    this.#sent = "SIGTERM";
    this.#target.signal("SIGTERM");
    this.#cancelKill = this.#after(leftMs, () => this.#kill());
    this.#lookAfter(leftMs);
    this.#onTerm();
  }

  /** Ends the watch: the command has ended. */
  stop(): void {
    if (this.#state !== "killed") this.#state = "stopped";
    this.#end();
  }

  #lookAfter(ms: number): void {
    this.#cancelLook = this.#after(Math.min(ms, lookMs), () => this.check());
  }

  #kill(): void {
    // A look at the lock may be what makes it known as lost, and then its signal has been here first.
    if (this.#state === "killed") return;
    this.#state = "killed";
    this.#sent = "SIGKILL";
    this.#target.signal("SIGKILL");
    this.#end();
  }

  #end(): void {
    this.#cancelLook?.();
    this.#cancelKill?.();
    this.#lock.signal.removeEventListener("abort", this.#aborted);
  }
}
