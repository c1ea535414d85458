/** What a holder has: a view of its claim. It decides nothing; it asks the claim each time. */
import type { Answer } from "./backend.ts";
import type { Claim } from "./claim.ts";
import type { LossCause } from "./channels.ts";
import { LockError } from "./errors.ts";

/** A lock that was granted. Give its token to the resource that it protects. */
export class Lock {
  readonly #claim: Claim;
  readonly #backend: string;
  #controller: AbortController | null = null;
  #release: Promise<"released" | "gone"> | null = null;

  readonly #leave: () => Answer<"released" | "gone">;

  /** @internal Made by LockManager. */
  constructor(claim: Claim, backend: string, leave: () => Answer<"released" | "gone"> = () => claim.leave()) {
    this.#claim = claim;
    this.#backend = backend;
    this.#leave = leave;
  }

  get name(): string {
    return this.#claim.wish.name;
  }

  get mode(): "exclusive" | "shared" {
    return this.#claim.wish.mode;
  }

  /** The fencing token: strictly larger than that of every earlier grant of this name. */
  get token(): bigint {
    return this.#claim.seq;
  }

  /** Whether holding is certain, by the clock of this very moment. Once false, it stays false. */
  get held(): boolean {
    return this.#release === null && this.#claim.held;
  }

  /** For how long holding stays certain if no renewal succeeds, in milliseconds; 0 when it is not held. */
  get validForMs(): number {
    return this.#release === null ? this.#claim.validForMs : 0;
  }

  /**
   * Aborts when holding is no longer certain, before anybody else can be granted, with a LockError LOCK_LOST as its
   * reason. A release does not abort it.
   */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      const then = this.#claim.onLost;
      this.#claim.onLost = (why) => {
        this.#controller?.abort(this.lossError(why));
        then?.(why);
      };
      if (this.#release === null && !this.#claim.held) {
        this.#controller.abort(this.lossError(this.#claim.lostBecause ?? "expired"));
      }
    }
    return this.#controller.signal;
  }

  /** Throws a LockError LOCK_LOST unless holding is certain now. */
  assertHeld(): void {
    if (!this.held) throw this.lossError(this.#claim.lostBecause);
  }

  /**
   * Gives the lock back; the first call counts. "gone" if the store did not have it any more: somebody else may have
   * held it meanwhile. Rejects with a LockError if the store does not answer; the ttl then frees it.
   */
  release(): Promise<"released" | "gone"> {
    if (this.#release === null) {
      // A release must not hide a loss that nobody has seen yet.
      this.#claim.tellLoss();
      this.#release = (async () => this.#leave())();
    }
    return this.#release;
  }

  /** Releases, and says nothing if the store does not answer: the ttl frees the lock. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
  }

  /** @internal The same lock for a nested section: its release leaves that section alone. */
  nested(leave: () => void): Lock {
    return new Lock(this.#claim, this.#backend, () => {
      leave();
      return "released";
    });
  }

  /** @internal Whether release was called. */
  get released(): boolean {
    return this.#release !== null;
  }

  /** @internal The error that says why it is not held any more; null stands for a release. */
  lossError(why: LossCause | null): LockError {
    const text = why === null ? "it was released" : lossTexts[why];
    const message = `lock ${JSON.stringify(this.name)} on ${this.#backend} is not held any more: ${text}`;
    return new LockError("LOCK_LOST", message, { lock: this.name, backend: this.#backend });
  }
}

const lossTexts: Record<LossCause, string> = {
  expired:
    "its ttl passed before a renewal was answered; do less between turns of the event loop, or give a longer ttl",
  evicted: "somebody else took it away (steal or a forced release)",
  gone: "the store does not have it any more (removed by hand, restarted empty, or failed over)",
  "max-hold": "it was held for maxHold, and the watchdog stopped",
  closed: "its LockManager was closed",
};
