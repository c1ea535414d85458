/** One callback under one lock: enters when the grant comes, leaves when the callback ends. Written without async functions, since each costs promises. */
import type { Claim, Claimant } from "./claim.ts";
import { Lock } from "./lock.ts";

/** What the callback of a request is called with: its overload decides whether it takes null. */
export type Callback<T> = (lock: Lock | null) => T;

/** Runs a callback while its claim holds, and settles the promise of `request`. */
export class Run<T> implements Claimant {
  private readonly callback: Callback<T>;
  private readonly backend: string;
  private readonly resolve: (value: Awaited<T> | PromiseLike<Awaited<T>>) => void;
  /** Rejects the request; a theft does so at once, whatever the callback is doing. */
  readonly failed: (error: unknown) => void;
  /** Called with the claim, or with null if it is busy. */
  private readonly enterLater: (claim: Claim | null) => void;
  private lock: Lock | null = null;
  private claim: Claim | null = null;

  constructor(
    callback: Callback<T>,
    backend: string,
    resolve: (value: Awaited<T> | PromiseLike<Awaited<T>>) => void,
    reject: (error: unknown) => void,
  ) {
    this.callback = callback;
    this.backend = backend;
    this.resolve = resolve;
    this.failed = reject;
    // The callback runs when this promise's turn comes: in the async context of the caller, never in that of whoever
    // released the lock, and never before `request` has returned.
    let enterLater: (claim: Claim | null) => void = ignore;
    void new Promise<Claim | null>((grant) => {
      enterLater = grant;
    }).then((claim) => this.enter(claim));
    this.enterLater = enterLater;
  }

  granted(claim: Claim): void {
    this.enterLater(claim);
  }

  refused(): void {
    this.enterLater(null);
  }

  private enter(claim: Claim | null): void {
    if (claim !== null) {
      if (!claim.enter()) return;
      this.claim = claim;
      this.lock = new Lock(claim, this.backend);
      claim.onLost = (why) => {
        if (why === "evicted") this.failed(new DOMException(`the lock "${claim.wish.name}" was stolen`, "AbortError"));
      };
    }
    let result: T;
    try {
      result = this.callback(this.lock);
    } catch (error) {
      this.threw(error);
      return;
    }
    if (isThenable(result)) Promise.resolve(result).then(this.returned, this.threw);
    else this.returned(result as Awaited<T>);
  }

  private readonly returned = (value: Awaited<T>): void => {
    const { claim, lock } = this;
    if (claim === null || lock === null || lock.released) return this.resolve(value);
    const lost = claim.held ? null : lock.lossError(claim.lostBecause);
    this.leave(claim, () => (lost === null ? this.resolve(value) : this.failed(lost)));
  };

  /** The callback's own error wins over a loss. */
  private readonly threw = (error: unknown): void => {
    if (this.claim === null || this.lock?.released) this.failed(error);
    else this.leave(this.claim, () => this.failed(error));
  };

  /** Leaves quietly: the callback has ended, and if the store does not answer now, the ttl frees the lock. */
  private leave(claim: Claim, then: () => void): void {
    const left = claim.leave();
    if (left instanceof Promise) void left.then(then, then);
    else then();
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const object = (typeof value === "object" && value !== null) || typeof value === "function";
  return object && "then" in value && typeof value.then === "function";
}

function ignore(): void {}
