/** What one LockManager has in common for all its requests: its backend, its keeper, its name, and the ways to take a lock. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Answer, Backend, Owner, Snapshot } from "./backend.ts";
import { Claim, type Client, type Wish } from "./claim.ts";
import { type Clock, type Random, systemClock } from "./clock.ts";
import { LockError } from "./errors.ts";
import { Keeper } from "./keeper.ts";
import { Lock } from "./lock.ts";

/** How a client is set up. */
export interface ClientOptions {
  /** A word for people, shown with host and pid: the service's name, for example. */
  readonly label?: string | undefined;
  /** @internal For tests: where time comes from. */
  readonly clock?: Clock | undefined;
  /** @internal For tests: where chance comes from. */
  readonly random?: Random | undefined;
  /** @internal For tests: the client's id instead of a random one. */
  readonly clientId?: string | undefined;
}

/** One client of a store. */
export class LockClient implements Client {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: Owner;
  readonly keeper: Keeper;
  readonly #firstAppends = new Map<string, Promise<void>>();
  #entries = 0;
  #closing: Promise<void> | null = null;

  constructor(backend: Backend, options: ClientOptions) {
    this.backend = backend;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    // Made per instance, so that neither a fork nor a worker ever shares it.
    const client = options.clientId ?? randomUUID();
    this.owner = { client, host: hostname(), pid: process.pid, label: options.label };
    this.keeper = new Keeper(backend, this.clock, this.random);
  }

  nextEntryId(): string {
    return `${this.owner.client}.${++this.#entries}`;
  }

  inOrder(queue: string, patienceMs: number, send: () => Answer<Snapshot | null>): Answer<Snapshot | null> {
    const before = this.#firstAppends.get(queue);
    const answer = before === undefined ? send() : before.then(send);
    if (!(answer instanceof Promise)) return answer;
    const sent = before ?? Promise.resolve();
    const settled = sent
      .then(() => this.#ended(answer, patienceMs))
      .then(() => {
        if (this.#firstAppends.get(queue) === settled) this.#firstAppends.delete(queue);
      });
    this.#firstAppends.set(queue, settled);
    return answer;
  }

  /** Resolves when a call has ended, or has taken so long that nobody is held up by it any more. */
  #ended(call: Promise<unknown>, patienceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.clock.after(patienceMs, resolve);
      void call.catch(ignore).finally(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** Resolves when the requests made so far stand in their queues. */
  async settled(): Promise<void> {
    await Promise.all(this.#firstAppends.values());
  }

  /** A lock, or null if the wish was not to wait and it is busy. */
  take(wish: Wish): Promise<Lock | null> {
    return new Promise((resolve, reject) => {
      this.assertOpen(wish.name);
      const failed = (error: unknown): void => reject(this.#orAborted(wish, error));
      if (wish.signal?.aborted) return failed(wish.signal.reason);
      const granted = new Promise<Claim | null>((grant) => {
        new Claim(this, wish, { granted: grant, refused: () => grant(null), failed });
      });
      void granted.then((claim) => {
        if (claim === null) resolve(null);
        else if (claim.enter()) resolve(new Lock(claim, this.backend.name));
      });
    });
  }

  /** A lock. */
  async acquire(wish: Wish): Promise<Lock> {
    const lock = await this.take(wish);
    if (lock === null) throw new Error("a claim was refused that asked to wait");
    return lock;
  }

  /**
   * Runs a callback while holding a lock, as the standard says: an abort rejects with the signal's reason, a theft
   * rejects at once with an AbortError. A lock that was lost otherwise rejects with LOCK_LOST when the callback ends.
   */
  section<T>(wish: Wish, callback: (lock: never) => T): Promise<Awaited<T>> {
    // The caller's overload decides whether its callback takes null.
    const call = callback as (lock: Lock | null) => T;
    return new Promise((resolve, reject) => {
      this.assertOpen(wish.name);
      if (wish.signal?.aborted) return reject(wish.signal.reason);
      // The callback runs when this promise's turn comes: in the async context of the caller, never in that of whoever
      // released the lock, and never before `request` has returned.
      const granted = new Promise<Claim | null>((grant) => {
        new Claim(this, wish, { granted: grant, refused: () => grant(null), failed: reject });
      });
      void granted.then((claim) => {
        if (claim !== null && !claim.enter()) return;
        this.#run(claim, call, reject).then(resolve, reject);
      });
    });
  }

  async #run<T>(
    claim: Claim | null,
    callback: (lock: Lock | null) => T,
    reject: (error: unknown) => void,
  ): Promise<Awaited<T>> {
    if (claim === null) return await callback(null);
    const lock = new Lock(claim, this.backend.name);
    claim.onLost = (why) => {
      if (why === "evicted") reject(stolen(lock));
    };
    let result: Awaited<T>;
    try {
      result = await callback(lock);
    } catch (error) {
      // The callback's own error wins over a loss.
      await this.#leave(claim, lock);
      throw error;
    }
    const lost = lock.released || claim.held ? null : lock.lossError(claim.lostBecause);
    const left = this.#leave(claim, lock);
    if (left !== null) await left;
    if (lost !== null) throw lost;
    return result;
  }

  /** Leaves quietly: the callback has ended, and if the store does not answer now, the ttl frees the lock. */
  #leave(claim: Claim, lock: Lock): Promise<unknown> | null {
    if (lock.released) return null;
    const left = claim.leave();
    return left instanceof Promise ? left.catch(ignore) : null;
  }

  #orAborted(wish: Wish, error: unknown): unknown {
    if (wish.signal === undefined || !wish.signal.aborted || error instanceof LockError) return error;
    const { name: backend } = this.backend;
    const message = `lock ${JSON.stringify(wish.name)} on ${backend}: the caller's signal ended the wait`;
    return new LockError("LOCK_ABORTED", message, { lock: wish.name, backend, cause: error });
  }

  /** Throws LOCK_CLOSED once close was called. */
  assertOpen(lock?: string): void {
    if (this.#closing === null) return;
    const message = "this LockManager was closed: connect again to take locks";
    throw new LockError("LOCK_CLOSED", message, { lock, backend: this.backend.name });
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await this.keeper.close();
      await this.backend.close();
    })();
    return this.#closing;
  }
}

function stolen(lock: Lock): DOMException {
  return new DOMException(`the lock ${JSON.stringify(lock.name)} was stolen`, "AbortError");
}

/** Calls, and turns what is thrown into a rejection. */
export function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return work();
  } catch (error) {
    return Promise.reject(error);
  }
}

function ignore(): void {}
