/** The LockManager of the Web Locks standard, for a whole fleet: checks what callers ask and hands it to the client. */
import { follow } from "./aborts.ts";
import type { Backend, Traits } from "./backend.ts";
import { attempt, type ClientOptions, LockClient } from "./client.ts";
import type { Duration } from "./duration.ts";
import { hasCode } from "./errors.ts";
import { LockSet } from "./lock-set.ts";
import type { Lock } from "./lock.ts";
import { checkLabel, checkName, checkNames } from "./names.ts";
import {
  type AcquireOptions,
  type AnyCallback,
  type Asked,
  asObject,
  callbackOf,
  checkOptions,
  checkQuery,
  optionNames,
  plainly,
  refuseOthers,
  type RequestOptions,
  type TryOptions,
  wishFor,
} from "./options.ts";
import { type LockManagerSnapshot, query } from "./query.ts";
import { nestedIn, Sections } from "./reentrant.ts";
import type { Callback } from "./section.ts";
import { Semaphore } from "./semaphore.ts";
import type { Wish } from "./wish.ts";

/** How a LockManager is set up; the options of a request take precedence. */
export interface ManagerOptions extends ClientOptions {
  /**
   * The ttl of requests that give none.
   * @default "30s"
   */
  readonly ttl?: Duration | undefined;
  /**
   * Whether requests are reentrant that do not say.
   * @default false
   */
  readonly reentrant?: boolean | undefined;
}

/** The options of a LockManager. */
export const managerOptionNames: readonly (keyof ManagerOptions)[] = [
  "label",
  "ttl",
  "reentrant",
  "clientId",
  "clock",
  "random",
];

/** With `ifAvailable` the callback may get null. */
type Surely = RequestOptions & { readonly ifAvailable?: false | undefined };

/** Locks on one store, as one client. Made by `connect`. */
export class LockManager {
  readonly #client: LockClient;
  readonly #defaults: Asked;
  readonly #sections = new Sections();
  #lastWish: Wish | null = null;

  constructor(backend: Backend, options: ManagerOptions = {}) {
    const { ttl, reentrant, label, clientId } = options;
    refuseOthers(asObject(options), managerOptionNames);
    if (label !== undefined) checkLabel(label, "label");
    if (clientId !== undefined) checkLabel(clientId, "clientId");
    this.#defaults = checkOptions({ ttl, reentrant }, optionNames.request, plainly);
    this.#client = new LockClient(backend, options);
  }

  /** The id of this client, as in query(). */
  get clientId(): string {
    return this.#client.owner.client;
  }

  /** What the store promises. */
  get traits(): Traits {
    return this.#client.backend.traits;
  }

  /**
   * Runs the callback while holding the lock, as the Web Locks standard says, and gives its result. Rejects with
   * LOCK_LOST if the lock was lost while the callback ran, unless the callback itself failed. Several names are taken in
   * sorted order, all or nothing.
   */
  request<T>(name: string, callback: (lock: Lock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: Surely, callback: (lock: Lock) => T): Promise<Awaited<T>>;
  request<T>(name: string, options: RequestOptions, callback: (lock: Lock | null) => T): Promise<Awaited<T>>;
  request<T>(names: readonly string[], callback: (set: LockSet) => T): Promise<Awaited<T>>;
  request<T>(names: readonly string[], options: Surely, callback: (set: LockSet) => T): Promise<Awaited<T>>;
  request<T>(
    names: readonly string[],
    options: RequestOptions,
    callback: (set: LockSet | null) => T,
  ): Promise<Awaited<T>>;
  request(name?: unknown, second?: unknown, third?: unknown): Promise<unknown> {
    try {
      const callback = callbackOf(second, third);
      const options = third === undefined ? undefined : second;
      const asked = checkOptions(options, optionNames.request, this.#defaults);
      if (Array.isArray(name)) return this.#requestSet(checkNames(name), asked, callback);
      return this.#request(this.#wishFor(name, asked), asked.reentrant, callback);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Waits for the lock. Give it back with `release`, or hold it with `await using`. */
  acquire(name: string, options?: AcquireOptions): Promise<Lock>;
  acquire(names: readonly string[], options?: AcquireOptions): Promise<LockSet>;
  acquire(name: unknown, options?: AcquireOptions): Promise<Lock | LockSet> {
    return attempt<Lock | LockSet>(() => {
      const asked = checkOptions(options, optionNames.acquire, this.#defaults);
      if (!Array.isArray(name)) return this.#client.acquire(lockWish(name, asked));
      return this.#acquireSet(checkNames(name), asked);
    });
  }

  /** The lock, or null if it is busy. */
  tryAcquire(name: string, options?: TryOptions): Promise<Lock | null>;
  tryAcquire(names: readonly string[], options?: TryOptions): Promise<LockSet | null>;
  tryAcquire(name: unknown, options?: TryOptions): Promise<Lock | LockSet | null> {
    return attempt<Lock | LockSet | null>(() => {
      const asked = { ...checkOptions(options, optionNames.tryAcquire, this.#defaults), ifAvailable: true };
      if (!Array.isArray(name)) return this.#client.take(lockWish(name, asked));
      return this.#takeSet(checkNames(name), asked);
    });
  }

  /** A lock that so many may hold at once. All who use the name should give the same number. */
  semaphore(name: string, permits: number): Semaphore {
    return new Semaphore(this.#client, name, permits, this.#defaults);
  }

  /** Who holds and who waits, in the order of their tokens; after the requests that were made before. */
  async query(options?: { readonly prefix?: string | undefined }): Promise<LockManagerSnapshot> {
    const prefix = checkQuery(options);
    this.#client.assertOpen();
    await this.#client.settled();
    return query(this.#client.backend, this.#client.clock, prefix);
  }

  /**
   * Ends this client: waits reject with LOCK_CLOSED; locks that are held are lost, first by their signal, then in the
   * store. Await your sections first if they are to end in peace.
   */
  close(): Promise<void> {
    return this.#client.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #request(wish: Wish, reentrant: boolean, callback: Callback): Promise<unknown> {
    if (!reentrant) return this.#client.section(wish, callback);
    const { name } = wish;
    const sections = this.#sections;
    const outer = sections.find(name);
    if (outer !== undefined)
      return nestedIn(outer, wish, this.#client, (lock) => sections.run(name, lock, callback));
    return this.#client.section(wish, (lock: Lock | null) => sections.run(name, lock, callback));
  }

  /** The last wish is used again where it is the same: a lock that is taken again and again is the usual case. */
  #wishFor(name: unknown, asked: Asked): Wish {
    if (asked !== this.#defaults) return lockWish(name, asked);
    const last = this.#lastWish;
    if (last !== null && last.name === name) return last;
    return (this.#lastWish = lockWish(name, asked));
  }

  /**
   * Several names: one request inside the other, in sorted order, so that two of them never wait for each other. If one
   * is stolen while the callback runs, that is told at once, but the others are kept until the callback has ended.
   */
  #requestSet(names: readonly string[], asked: Asked, callback: AnyCallback): Promise<unknown> {
    const busy = Symbol("busy");
    const startedAt = this.#client.clock.now();
    return new Promise((resolve, reject) => {
      let running = false;
      let work: Promise<unknown> = Promise.resolve();
      const run = async (set: LockSet): Promise<unknown> => {
        set.assertHeld();
        running = true;
        try {
          return await callback(set);
        } finally {
          running = false;
        }
      };
      const takeRest = async (taken: readonly Lock[], left: Asked): Promise<unknown> => {
        const name = names[taken.length];
        const set = new LockSet(taken);
        if (name === undefined) return (work = run(set));
        const waiting = whileHeld(set, left);
        try {
          const wish = wishFor(waiting.asked, name, name);
          return await this.#request(wish, asked.reentrant, (lock: Lock | null) => {
            waiting.end();
            return lock === null ? busy : takeRest([...taken, lock], this.#remaining(asked, startedAt));
          });
        } catch (error) {
          waiting.end();
          if (running) reject(error);
          await Promise.allSettled([work]);
          throw error;
        }
      };
      const whole = async (): Promise<unknown> => {
        const result = await takeRest([], asked);
        return result === busy ? callback(null) : result;
      };
      whole().then(resolve, reject);
    });
  }

  async #acquireSet(names: readonly string[], asked: Asked): Promise<LockSet> {
    const set = await this.#takeSet(names, asked);
    if (set === null) throw new Error("a set was refused that asked to wait");
    return set;
  }

  async #takeSet(names: readonly string[], asked: Asked): Promise<LockSet | null> {
    const startedAt = this.#client.clock.now();
    let set = new LockSet([]);
    try {
      for (const name of names) {
        const waiting = whileHeld(set, this.#remaining(asked, startedAt));
        const lock = await this.#client.take(wishFor(waiting.asked, name, name)).finally(waiting.end);
        if (lock === null) {
          await set.release();
          return null;
        }
        set = new LockSet([...set.locks, lock]);
      }
      set.assertHeld();
      return set;
    } catch (error) {
      await set[Symbol.asyncDispose]();
      // The wait was ended by the loss of what was held already, not by the caller.
      if (hasCode(error, "LOCK_ABORTED") && set.signal.aborted && error.cause === set.signal.reason)
        throw error.cause;
      throw error;
    }
  }

  #remaining(asked: Asked, startedAt: number): Asked {
    const waitedMs = this.#client.clock.now() - startedAt;
    return { ...asked, waitMs: Math.max(0, asked.waitMs - waitedMs) };
  }
}

// What the standard's interfaces have.
Object.defineProperty(LockManager.prototype, Symbol.toStringTag, {
  value: "LockManager",
  configurable: true,
});

function lockWish(name: unknown, asked: Asked): Wish {
  const checked = checkName(name);
  return wishFor(asked, checked, checked);
}

/** A wait that also ends when one of the locks that are held already is lost; `end` says that it is over. */
function whileHeld(set: LockSet, asked: Asked): { readonly asked: Asked; readonly end: () => void } {
  if (set.locks.length === 0 || asked.ifAvailable || asked.steal) return { asked, end: () => {} };
  if (asked.signal === undefined) return { asked: { ...asked, signal: set.signal }, end: () => {} };
  const { signal, end } = follow([set.signal, asked.signal]);
  return { asked: { ...asked, signal }, end };
}
