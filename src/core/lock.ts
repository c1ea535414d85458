/** What a holder has: a view of its claim. It decides nothing; it asks the claim each time. */
import { inspect } from "node:util";
import type { Claim } from "./claim.ts";
import type { LockError } from "./errors.ts";
import { errorOf } from "./report.ts";

/** Why the token of a shared lock must not be compared. */
export const heldTogether = "shared locks are held at once, with tokens in any order";

/** A lock that was granted. Give its token to the resource that it protects. */
export class Lock {
  private readonly claim: Claim;
  private readonly outer: Lock | null;
  private readonly leave: (() => void) | null;
  private controller: AbortController | null = null;
  private leaving: Promise<"released" | "gone"> | null = null;

  /** @internal Made by LockManager. A nested lock leaves its own section alone. */
  constructor(claim: Claim, outer: Lock | null = null, leave: (() => void) | null = null) {
    this.claim = claim;
    this.outer = outer;
    this.leave = leave;
  }

  get name(): string {
    return this.claim.wish.name;
  }

  get mode(): "exclusive" | "shared" {
    return this.claim.wish.mode;
  }

  /**
   * The fencing token: strictly larger than that of every earlier grant of this name. Throws LOCK_UNSUPPORTED where the
   * store gives none: a number that grows only by luck must not look like one.
   */
  get token(): bigint {
    if (this.claim.client.backend.traits.tokens === null) {
      throw errorOf(
        this.claim,
        "LOCK_UNSUPPORTED",
        "its locks carry no token; demand one with require.fencing",
      );
    }
    return this.claim.seq;
  }

  /**
   * Why a resource must not compare this token with others; null if it may. Those who hold at once have different tokens,
   * and a guard would refuse all but the newest.
   */
  get unfenced(): string | null {
    const { wish, client } = this.claim;
    const { name, traits } = client.backend;
    if (traits.tokens === null) return `the locks of ${name} carry no token that a resource could check`;
    if (wish.permits !== undefined)
      return "permits of a semaphore are held at once, with tokens in any order";
    return wish.mode === "shared" ? heldTogether : null;
  }

  /** Whether holding is certain, by the clock of this very moment. Once false, it stays false. */
  get held(): boolean {
    return this.leaving === null && this.claim.held;
  }

  /** For how long holding stays certain if no renewal succeeds, in milliseconds; 0 when it is not held. */
  get validForMs(): number {
    return this.leaving === null ? this.claim.validForMs : 0;
  }

  /**
   * Aborts when holding is no longer certain, before anybody else can be granted, with a LockError LOCK_LOST as its
   * reason. A release does not abort it.
   */
  get signal(): AbortSignal {
    // One for all sections of a lock: there may be any number of nested ones, one after the other.
    if (this.outer !== null) return this.outer.signal;
    if (this.controller === null) {
      const controller = new AbortController();
      this.controller = controller;
      const { claim } = this;
      claim.onLost = () => controller.abort(claim.lossError());
      if (this.leaving === null && !claim.held) controller.abort(claim.lossError());
    }
    return this.controller.signal;
  }

  /** Throws a LockError LOCK_LOST unless holding is certain now. */
  assertHeld(): void {
    if (!this.held) throw this.claim.lossError();
  }

  /**
   * Gives the lock back; the first call counts. "gone" if the store did not have it any more: somebody else may have
   * held it meanwhile. Rejects with a LockError if the store does not answer; the ttl then frees it.
   */
  release(): Promise<"released" | "gone"> {
    if (this.leaving === null) {
      // A release must not hide a loss that nobody has seen yet.
      this.claim.tellLoss();
      this.leaving = this.leaveOnce();
    }
    return this.leaving;
  }

  private leaveOnce(): Promise<"released" | "gone"> {
    return new Promise((resolve, reject) => {
      const left = (outcome: "released" | "gone" | LockError): void => {
        if (typeof outcome === "string") resolve(outcome);
        else reject(outcome);
      };
      if (this.leave === null) {
        const atOnce = this.claim.leave({ left });
        if (atOnce !== null) resolve(atOnce);
      } else {
        this.leave();
        resolve("released");
      }
    });
  }

  /** Releases, and says nothing if the store does not answer: the ttl frees the lock. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
  }

  /** What a log should show of it; the token as decimal text, since a JSON number could not hold it; null if there is none. */
  toJSON(): { name: string; mode: "exclusive" | "shared"; token: string | null; held: boolean } {
    const { name, mode, held, claim } = this;
    const token = claim.client.backend.traits.tokens === null ? null : String(claim.seq);
    return { name, mode, token, held };
  }

  /** @internal The same lock for a nested section. */
  nested(leave: () => void): Lock {
    return new Lock(this.claim, this, leave);
  }

  /** @internal Whether release was called. */
  get released(): boolean {
    return this.leaving !== null;
  }
}

// What the standard's interfaces have.
Object.defineProperty(Lock.prototype, Symbol.toStringTag, { value: "Lock", configurable: true });

// What console.log shows.
Object.defineProperty(Lock.prototype, inspect.custom, {
  value(this: Lock): string {
    return `Lock ${inspect(this.toJSON())}`;
  },
});
