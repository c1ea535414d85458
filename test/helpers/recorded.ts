/** Clients that take locks again and again, and write down what they see, so that the checker can judge it. */
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../src/core/errors.ts";
import type { Lock } from "../../src/core/lock.ts";
import type { LockManager } from "../../src/core/manager.ts";
import {
  type CheckOptions,
  type CheckResult,
  checkHistory,
  formatEvent,
  History,
  type Violation,
} from "../../src/verify/index.ts";

/** What the clients do. */
export interface Workload {
  readonly names: readonly string[];
  readonly ttlMs: number;
  /** How long each holds, at most, in milliseconds. */
  readonly holdMs: number;
  /** How long each waits, at most, in milliseconds. */
  readonly waitMs: number;
}

/** A moment, on the clock of a history. */
export const now = (): bigint => process.hrtime.bigint();

/** How often a holder writes down until when it believes, in milliseconds. */
const lookMs = 50;

/** One history, and those who write it. */
export class Recorded {
  readonly history: History = new History();
  readonly #workload: Workload;
  #attempts = 0;
  #under = 0;
  #over = false;
  grants = 0;
  losses = 0;

  constructor(workload: Workload) {
    this.#workload = workload;
  }

  /** Takes locks one after the other until `stop`. */
  async loop(proc: string, locks: LockManager): Promise<void> {
    while (!this.#over) {
      const name = this.#workload.names[this.#attempts % this.#workload.names.length] ?? "";
      await this.once(proc, locks, name);
    }
  }

  stop(): void {
    this.#over = true;
  }

  /** Takes a lock, holds it for a while, and gives it back. */
  async once(proc: string, locks: LockManager, name: string): Promise<void> {
    const { ttlMs, holdMs, waitMs } = this.#workload;
    const attempt = `${proc}.${++this.#attempts}`;
    const about = { proc, lock: name, attempt };
    this.#under += 1;
    this.history.record({ ...about, f: "acquire", type: "invoke", ttl: ttlMs });
    try {
      const lock = await locks.acquire(name, { ttl: ttlMs, wait: waitMs });
      this.history.record({
        ...about,
        f: "acquire",
        type: "ok",
        token: lock.token,
        validUntil: believedUntil(lock),
      });
      this.grants += 1;
      await this.#hold(about, lock, Math.random() * holdMs);
    } catch (error) {
      const unknown = hasCode(error, "LOCK_OUTCOME_UNKNOWN");
      this.history.record({ ...about, f: "acquire", type: unknown ? "info" : "fail", detail: String(error) });
      await sleep(20);
    } finally {
      this.#under -= 1;
    }
  }

  async #hold(
    about: { proc: string; lock: string; attempt: string },
    lock: Lock,
    forMs: number,
  ): Promise<void> {
    const { signal } = lock;
    signal.addEventListener("abort", () => {
      this.losses += 1;
      this.history.record({ ...about, f: "lost", type: "ok" });
    });
    const endAt = performance.now() + forMs;
    while (performance.now() < endAt && !signal.aborted) {
      await sleep(Math.min(lookMs, forMs));
      // Taken before the look: who holds a moment later has held now.
      const t = now();
      const validUntil = believedUntil(lock, t);
      // The last look, since each may find that the lock is lost, and then that is written down at once.
      if (!lock.held) continue;
      // First what renewals have brought meanwhile, then what was seen on the strength of it.
      this.history.record({ ...about, f: "renew", type: "invoke" }, t);
      this.history.record({ ...about, f: "renew", type: "ok", validUntil }, t);
      this.history.record({ ...about, f: "held", type: "ok" }, t);
    }
    this.history.record({ ...about, f: "release", type: "invoke" });
    try {
      const outcome = await lock.release();
      this.history.record({ ...about, f: "release", type: outcome === "released" ? "ok" : "fail" });
    } catch (error) {
      this.history.record({ ...about, f: "release", type: "info", detail: String(error) });
    }
  }

  /** A fault begins; gives the function that says that it is over. */
  fault(fault: string, target: string): () => void {
    const about = { proc: "nemesis", f: "fault", fault, target } as const;
    this.history.record({ ...about, type: "invoke" });
    return () => void this.history.record({ ...about, type: "ok" });
  }

  /** Ends the history with what is left in the store, and judges it. */
  judge(leaks: Readonly<Record<string, number>>, options: CheckOptions = {}): CheckResult {
    this.history.record({ proc: "world", f: "end", type: "ok", leaks, pending: this.#under });
    return checkHistory(this.history.events, {
      invariants: ["M1", "M2", "M5", "M6", "L1", "L2", "L3"],
      waitMs: 2 * this.#workload.waitMs,
      ...options,
    });
  }
}

/** Fails unless nothing is wrong and nothing could not be judged, in words that the log of a run far away still has. */
export function expectValid({ violations, doubts }: Pick<CheckResult, "violations" | "doubts">): void {
  const told = violations.map(({ invariant, message, events }: Violation) =>
    [`${invariant}: ${message}`, ...events.map(formatEvent)].join("\n"),
  );
  if (told.length + doubts.length > 0) throw new Error([...told, ...doubts].join("\n"));
}

/** Until when a holder believes, on the clock of the history; `t` is at or before the look. */
function believedUntil(lock: Lock, t: bigint = now()): bigint {
  return t + BigInt(Math.floor(lock.validForMs * 1e6));
}
