/**
 * One callback under one lock: enters when the grant comes, leaves when the callback ends. It is written
 * without async functions, since each of them costs promises.
 */
import type { Claim, Claimant } from "./claim.ts";
import type { LockError } from "./errors.ts";
import { Lock } from "./lock.ts";

/** What the callback of a request is called with: its overload decides whether it takes null. */
export type Callback = (lock: Lock | null) => unknown;

/** Runs a callback while its claim holds, and settles the promise of `request`. */
export class Run implements Claimant {
  private readonly callback: Callback;
  private readonly resolve: (value: unknown) => void;
  /** Rejects the request; a theft does so at once, whatever the callback is doing. */
  readonly failed: (error: unknown) => void;
  /** The claim when it is granted, null when it was refused; undefined while it waits. */
  private outcome: Claim | null | undefined = undefined;
  private wake: (() => void) | null = null;
  private lock: Lock | null = null;

  constructor(callback: Callback, resolve: (value: unknown) => void, reject: (error: unknown) => void) {
    this.callback = callback;
    this.resolve = resolve;
    this.failed = reject;
  }

  granted(claim: Claim): void {
    this.outcome = claim;
    this.wake?.();
  }

  refused(): void {
    this.outcome = null;
    this.wake?.();
  }

  /**
   * Arranges, in the async context of the caller, that the callback runs there when the claim is granted: never in the
   * context of whoever released the lock, and never before `request` has returned.
   */
  arrange(): void {
    const turn =
      this.outcome === undefined
        ? new Promise<void>((resolve) => {
            this.wake = resolve;
          })
        : atOnce;
    void turn.then(() => this.enter(this.outcome ?? null));
  }

  private enter(claim: Claim | null): void {
    if (claim !== null) {
      if (!claim.enter()) return;
      this.lock = new Lock(claim);
      claim.onLost = (why) => {
        if (why === "evicted") this.failed(stolen(claim));
      };
    }
    try {
      const result = this.callback(this.lock);
      if (isThenable(result)) {
        Promise.resolve(result).then(
          (value) => this.returned(value),
          (error: unknown) => this.threw(error),
        );
      } else {
        this.returned(result);
      }
    } catch (error) {
      this.threw(error);
    }
  }

  private returned(value: unknown): void {
    const { lock, outcome: claim } = this;
    if (lock === null || !claim) return this.resolve(value);
    claim.tellLoss();
    const lost = claim.lostBecause === null ? null : claim.lossError();
    const left = lock.released ? null : claim.leave();
    // The callback has ended: if the store does not answer now, the ttl frees the lock.
    if (left instanceof Promise) void left.then(ignore, ignore).then(() => this.settle(value, lost));
    else this.settle(value, lost);
  }

  private settle(value: unknown, lost: LockError | null): void {
    if (lost === null) this.resolve(value);
    else this.failed(lost);
  }

  /** The callback's own error wins over a loss. */
  private threw(error: unknown): void {
    const left = this.lock?.released === false ? this.outcome?.leave() : null;
    if (left instanceof Promise) void left.then(ignore, ignore).then(() => this.failed(error));
    else this.failed(error);
  }
}

const atOnce = Promise.resolve();

function stolen({ wish }: Claim): DOMException {
  return new DOMException(`the lock ${JSON.stringify(wish.name)} was stolen`, "AbortError");
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const object = (typeof value === "object" && value !== null) || typeof value === "function";
  return object && "then" in value && typeof value.then === "function";
}

function ignore(): void {}
