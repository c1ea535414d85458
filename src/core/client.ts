/** What one LockManager has in common for all its requests: its backend, its keeper, its name, and the ways to take a lock. */
import { randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Backend, Owner } from "./backend.ts";
import { Claim } from "./claim.ts";
import { type Clock, type Random, systemClock } from "./clock.ts";
import { LockError } from "./errors.ts";
import { Keeper } from "./keeper.ts";
import { Lock } from "./lock.ts";
import { storeText } from "./report.ts";
import { type Callback, Run } from "./section.ts";
import type { Client, Turn, Wish } from "./wish.ts";

/** How a client is set up. */
export interface ClientOptions {
  /** A word for people, shown with host and pid: the service's name, for example. */
  readonly label?: string | undefined;
  /** Where time comes from: for tests. */
  readonly clock?: Clock | undefined;
  /** Where chance comes from: for tests. */
  readonly random?: Random | undefined;
  /** The client's id instead of a random one: for tests. It must be unique. */
  readonly clientId?: string | undefined;
}

/** One client of a store. */
export class LockClient implements Client {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: Owner;
  readonly keeper: Keeper;
  readonly behind: Map<string, Claim> = new Map();
  /** What the ids of its entries start with: short, since ids are keys everywhere, and random, so that they are unique. */
  readonly #prefix: string;
  /** That, and how many thousands of entries there were. */
  #thousand: string;
  /** For each queue: resolves when the last first append that was made has been answered or given up. */
  readonly #turns = new Map<string, Promise<void>>();
  #entries = 0;
  #closing: Promise<void> | null = null;

  constructor(backend: Backend, options: ClientOptions) {
    this.backend = backend;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    // Made per instance, so that neither a fork nor a worker ever shares it.
    const client = options.clientId ?? randomUUID();
    this.#prefix = `${options.clientId ?? randomBytes(9).toString("base64url")}.`;
    this.#thousand = this.#prefix;
    this.owner = { client, host: hostname(), pid: process.pid, label: options.label };
    this.keeper = new Keeper(backend, this.clock, this.random);
  }

  nextEntryId(): string {
    const count = ++this.#entries;
    if (count % 1000 === 0) this.#thousand = `${this.#prefix}${count / 1000}-`;
    // The runtime keeps the text of each number that it has seen for long, so there should be few of them.
    return this.#thousand + (count % 1000);
  }

  inOrder(queue: string, send: () => Promise<void>): Turn {
    const before = this.#turns.get(queue);
    const answered = before === undefined ? send() : before.then(send);
    let passOn = ignore;
    const passed = new Promise<void>((resolve) => {
      passOn = resolve;
    });
    void answered.then(passOn);
    // Whoever passes on before its own turn has come must not let the next one overtake those before.
    const over = Promise.all([before, passed]).then(() => {
      if (this.#turns.get(queue) === over) this.#turns.delete(queue);
    });
    this.#turns.set(queue, over);
    return { passOn };
  }

  /** Resolves when the requests made so far stand in their queues. */
  async settled(): Promise<void> {
    await Promise.all(this.#turns.values());
  }

  /** A lock, or null if the wish was not to wait and it is busy. */
  take(wish: Wish): Promise<Lock | null> {
    return new Promise((resolve, reject) => {
      this.assertOpen(wish.name);
      const failed = (error: unknown): void => reject(this.#orAborted(wish, error));
      if (wish.signal?.aborted) return failed(wish.signal.reason);
      const granted = new Promise<Claim | null>((grant) => {
        new Claim(this, wish, { granted: grant, refused: () => grant(null), failed }).start();
      });
      void granted.then((claim) => {
        if (claim === null) resolve(null);
        else if (claim.enter()) resolve(new Lock(claim));
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
  section(wish: Wish, callback: Callback): Promise<unknown> {
    this.assertOpen(wish.name);
    if (wish.signal?.aborted) return Promise.reject(wish.signal.reason);
    const run = new Run(callback);
    new Claim(this, wish, run).start();
    return run.arrange();
  }

  #orAborted(wish: Wish, error: unknown): unknown {
    if (!wish.signal?.aborted || error !== wish.signal.reason) return error;
    const shown = `lock ${JSON.stringify(wish.name)} on ${storeText(this.backend)}`;
    const details = { lock: wish.name, backend: this.backend.name, cause: error };
    return new LockError("LOCK_ABORTED", `${shown}: the caller's signal ended the wait`, details);
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

/** Calls, and turns what is thrown into a rejection. */
export function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return work();
  } catch (error) {
    return Promise.reject(error);
  }
}

function ignore(): void {}
