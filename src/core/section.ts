/**
 * One callback under one lock: enters when the grant comes, leaves when the callback ends. It is written
 * without async functions, since each of them costs promises.
 */
import type { Claim, Claimant } from "./claim.ts";
import type { LossCause } from "./channels.ts";
import { Lock } from "./lock.ts";
import type { Released } from "./take-out.ts";

/** What the callback of a request is called with: its overload decides whether it takes null. */
export type Callback = (lock: Lock | null) => unknown;

/** Runs a callback while its claim holds. */
export class Run implements Claimant, Released {
  private readonly callback: Callback;
  /** The claim when it is granted, null when it was refused, what went wrong otherwise; undefined while it waits. */
  private outcome: Claim | Failure | null | undefined = undefined;
  private wake: ((run: Run) => void) | null = null;
  /** Rejects the request at once, whatever the callback is doing. Only while the callback runs. */
  private reject: ((error: unknown) => void) | null = null;
  /** What the request is settled with once the lock was given back, and how. */
  private result: unknown = undefined;
  private settle: Settle | null = null;

  constructor(callback: Callback) {
    this.callback = callback;
  }

  granted(claim: Claim): void {
    this.decided(claim);
  }

  refused(): void {
    this.decided(null);
  }

  failed(error: unknown): void {
    this.decided(new Failure(error));
  }

  lost(claim: Claim, why: LossCause): void {
    if (why === "evicted") this.reject?.(stolen(claim));
  }

  private decided(outcome: Claim | Failure | null): void {
    this.outcome = outcome;
    this.wake?.(this);
    this.wake = null;
  }

  /**
   * Gives the promise of the request. The callback will run in the async context of the caller of this: never in that of
   * whoever released the lock, and never before `request` has returned.
   */
  arrange(): Promise<unknown> {
    if (this.outcome !== undefined) {
      return new Promise((resolve, reject) => {
        void atOnce.then(() => this.enter(resolve, reject));
      });
    }
    const turn = new Promise<Run>((resolve) => {
      this.wake = resolve;
    });
    return turn.then(enter);
  }

  /** The callback's turn has come. */
  enter(resolve: Settle, reject: Settle): void {
    const { outcome } = this;
    if (outcome instanceof Failure) reject(outcome.error);
    else if (!outcome) this.runWithout(resolve, reject);
    // Given back meanwhile: by now the outcome says why.
    else if (!outcome.enter()) this.enter(resolve, reject);
    else this.run(outcome, resolve, reject);
  }

  private runWithout(resolve: Settle, reject: Settle): void {
    const { callback } = this;
    try {
      resolve(callback(null));
    } catch (error) {
      reject(error);
    }
  }

  private run(claim: Claim, resolve: Settle, reject: Settle): void {
    // Called by itself: a method's call would give it a `this`.
    const { callback } = this;
    this.reject = reject;
    try {
      const result = callback(new Lock(claim));
      if (isThenable(result)) {
        Promise.resolve(result).then(
          (value) => this.returned(claim, value, resolve, reject),
          (error: unknown) => this.leave(claim, error, reject),
        );
      } else {
        this.returned(claim, result, resolve, reject);
      }
    } catch (error) {
      // The callback's own error wins over a loss.
      this.leave(claim, error, reject);
    }
  }

  private returned(claim: Claim, value: unknown, resolve: Settle, reject: Settle): void {
    claim.tellLoss();
    if (claim.lostBecause === null) this.leave(claim, value, resolve);
    else this.leave(claim, claim.lossError(), reject);
  }

  /** Leaves unless the callback has; then settles the request. If the store does not answer, the ttl frees the lock. */
  private leave(claim: Claim, result: unknown, settle: Settle): void {
    this.reject = null;
    this.result = result;
    this.settle = settle;
    if (claim.hasLeft || claim.leave(this) !== null) this.left();
  }

  /** The lock was given back, or will end with its ttl. What it was settled with is forgotten: a lock may be kept for long. */
  left(): void {
    const { settle, result } = this;
    this.settle = null;
    this.result = undefined;
    settle?.(result);
  }
}

type Settle = (result: unknown) => void;

/** What a request rejects with. */
class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** The same function for all that wait, and their promise is made only now: there may be many. */
function enter(run: Run): Promise<unknown> {
  return new Promise((resolve, reject) => run.enter(resolve, reject));
}

const atOnce = Promise.resolve();

function stolen({ wish }: Claim): DOMException {
  return new DOMException(`the lock ${JSON.stringify(wish.name)} was stolen`, "AbortError");
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const object = (typeof value === "object" && value !== null) || typeof value === "function";
  return object && "then" in value && typeof value.then === "function";
}
