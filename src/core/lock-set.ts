/** Several locks that were granted together: all or nothing, with one signal. */
import type { Lock } from "./lock.ts";

/** The locks of a request for several names, in the order in which they were taken. */
export class LockSet {
  /** One Lock a name, sorted by name. */
  readonly locks: readonly Lock[];

  /** @internal Made by LockManager. */
  constructor(locks: readonly Lock[]) {
    this.locks = locks;
  }

  get names(): readonly string[] {
    return this.locks.map((lock) => lock.name);
  }

  /** The fencing token of each name: give each resource the token of the lock that protects it. */
  get tokens(): ReadonlyMap<string, bigint> {
    return new Map(this.locks.map((lock) => [lock.name, lock.token]));
  }

  /** Whether holding all of them is certain now. */
  get held(): boolean {
    return this.locks.every((lock) => lock.held);
  }

  /** Aborts when holding any of them is no longer certain. */
  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any(this.locks.map((lock) => lock.signal));
    return this.#signal;
  }
  #signal: AbortSignal | null = null;

  /** Throws a LockError LOCK_LOST unless holding all of them is certain now. */
  assertHeld(): void {
    for (const lock of this.locks) lock.assertHeld();
  }

  /** Gives all of them back, last taken first. "gone" if the store did not have one of them any more. */
  async release(): Promise<"released" | "gone"> {
    const outcomes = await Promise.allSettled(this.locks.toReversed().map((lock) => lock.release()));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    return outcomes.every((outcome) => outcome.status === "fulfilled" && outcome.value === "released")
      ? "released"
      : "gone";
  }

  /** Releases, and says nothing if the store does not answer. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
  }
}
