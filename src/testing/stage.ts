/** What a case works with: clients and managers of one fresh store, time, patience and chance. It judges nothing itself. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Backend,
  type Browsable,
  isBrowsable,
  type NewEntry,
  type Snapshot,
  type Traits,
} from "../core/backend.ts";
import { type Clock, type Random, systemClock } from "../core/clock.ts";
import { LockManager, type ManagerOptions } from "../core/manager.ts";
import { settle } from "./manual-clock.ts";
import { below, seeded } from "./random.ts";
import type { ContractStore, Pace } from "./store.ts";

/** What an entry is unless a case says otherwise: a writer that lives longer than any case. */
const lastingMs = 60_000;

/** The longest step between two looks at something that must come, in milliseconds. */
const longestStepMs = 25;

/** How often something is done anew that took longer than the entries in it live. */
const mostDelays = 10;

/** How a promise stands, without anybody having to await it. */
export interface Observed<T> {
  readonly promise: Promise<T>;
  state: "pending" | "fulfilled" | "rejected";
  reason: unknown;
}

/** The stage of one case. */
export class Stage {
  readonly pace: Required<{ [Key in keyof Pace]: NonNullable<Pace[Key]> }>;
  readonly random: Random;
  readonly clock: Clock;
  readonly #store: ContractStore;
  readonly #clients: Backend[] = [];
  readonly #managers: LockManager[] = [];
  readonly #id: string = randomUUID();
  #made = 0;

  constructor(store: ContractStore, pace: Pace) {
    this.#store = store;
    this.clock = store.clock ?? systemClock;
    this.pace = {
      shortMs: pace.shortMs ?? 200,
      lagMs: pace.lagMs ?? 100,
      patienceMs: pace.patienceMs ?? 5_000,
      limitMs: pace.limitMs ?? 60_000,
      cancellations: pace.cancellations ?? 300,
      interleavings: pace.interleavings ?? 10_000,
      seed: pace.seed ?? 1,
    };
    this.random = seeded(this.pace.seed);
  }

  /** Another client of the store; closed when the case ends. */
  async client(): Promise<Backend> {
    const client = await this.#store.client();
    this.#clients.push(client);
    return client;
  }

  async traits(): Promise<Traits> {
    return (this.#clients[0] ?? (await this.client())).traits;
  }

  /** A LockManager on a client of its own; closed when the case ends. */
  async manager(options: ManagerOptions = {}): Promise<LockManager> {
    const { clock, random } = this;
    const manager = new LockManager(await this.#store.client(), { clock, random, ...options });
    this.#managers.push(manager);
    return manager;
  }

  /** A name that no other case uses. */
  name(hint = "queue"): string {
    return `${hint}-${this.#id}-${++this.#made}`;
  }

  /** An entry with an id of its own. */
  entry(changes: Partial<NewEntry> = {}): NewEntry {
    const id = `${this.#id}.${++this.#made}`;
    const owner = { client: `client-${this.#id}`, host: "host", pid: 42 };
    return { id, owner, mode: "write", weight: 1, ttlMs: lastingMs, ...changes };
  }

  /** Appends an entry that must not be refused, and gives what the store said, as it was then. */
  async append(backend: Backend, queue: string, changes: Partial<NewEntry> = {}): Promise<Snapshot> {
    const snapshot = await backend.append(queue, this.entry(changes));
    assert.ok(snapshot !== null, "the append was refused");
    return copied(snapshot);
  }

  /** Lets time pass. */
  async elapse(ms: number): Promise<void> {
    await (this.#store.elapse?.(ms) ?? sleep(ms));
  }

  /** Lets so much time pass that an entry with the short ttl has surely expired. */
  async outliveShort(): Promise<void> {
    await this.elapse(this.pace.shortMs + this.pace.lagMs);
  }

  /**
   * Does something that must hold while entries live; `live` says for how long they do from that moment on. Where this process or the
   * store stood still for longer, a failure says nothing: then it is done anew, with other names.
   */
  async whileLive(attempt: (live: (lifeMs: number) => void) => Promise<void>): Promise<void> {
    for (let delays = 0; ; delays++) {
      let [since, lifeMs, late] = [this.clock.now(), Number.POSITIVE_INFINITY, false];
      const live = (nextMs: number): void => {
        const now = this.clock.now();
        late ||= now - since >= lifeMs;
        [since, lifeMs] = [now, nextMs];
      };
      try {
        return await attempt(live);
      } catch (error) {
        live(0);
        if (!late || delays === mostDelays) throw error;
      }
    }
  }

  /** A moment of random length: none, a turn of the event loop, or a millisecond. */
  async dawdle(): Promise<void> {
    const kind = below(this.random, 8);
    if (kind >= 5) await settle();
    if (kind === 7) await this.elapse(1);
  }

  /** Waits until something is so, within the patience. */
  async eventually(what: string | (() => string), isSo: () => boolean | Promise<boolean>): Promise<void> {
    let waitedMs = 0;
    for (let stepMs = 1; ; stepMs = Math.min(2 * stepMs, longestStepMs)) {
      await settle();
      if (await isSo()) return;
      if (waitedMs >= this.pace.patienceMs) {
        assert.fail(`not within ${this.pace.patienceMs} ms: ${typeof what === "string" ? what : what()}`);
      }
      await this.elapse(stepMs);
      waitedMs += stepMs;
    }
  }

  /** What a promise gives, within the patience. */
  async within<T>(what: string | (() => string), promise: Promise<T>): Promise<T> {
    const observed = observe(promise);
    await this.eventually(what, () => observed.state !== "pending");
    return promise;
  }

  /** The error that a promise rejects with, within the patience. */
  async failure(what: string, promise: Promise<unknown>): Promise<unknown> {
    const observed = observe(promise);
    await this.eventually(what, () => observed.state !== "pending");
    assert.equal(observed.state, "rejected", `it did not reject: ${what}`);
    return observed.reason;
  }

  /** Waits until a queue has so many entries. */
  async eventuallyHas(queue: string, count: number): Promise<void> {
    const looker = this.#clients[0] ?? (await this.client());
    const seen = async (): Promise<boolean> => (await looker.list(queue)).length === count;
    await this.eventually(`${count} entries in the queue`, seen);
  }

  /** Waits until nothing is left in the store: no entry, no queue, no litter. */
  async eventuallyClean(...queues: readonly string[]): Promise<void> {
    for (const queue of queues) await this.eventuallyHas(queue, 0);
    const looker = this.#clients[0] ?? (await this.client());
    if (isBrowsable(looker)) await this.#eventuallyNoQueue(looker);
    await this.eventuallyNoLitter();
  }

  /** What was asked for and is not wanted any more may come late, and goes then. */
  async #eventuallyNoQueue(looker: Browsable): Promise<void> {
    let left: readonly string[] = [];
    const none = async (): Promise<boolean> => {
      left = await looker.queues("");
      return left.length === 0;
    };
    await this.eventually(() => `no queue is left: ${left.join(", ")}`, none);
  }

  /** Waits until the store says that nothing is left. */
  async eventuallyNoLitter(): Promise<void> {
    let left: readonly string[] = [];
    const clean = async (): Promise<boolean> => {
      left = (await this.#store.litter?.()) ?? [];
      return left.length === 0;
    };
    try {
      await this.eventually("nothing is left", clean);
    } catch (cause) {
      throw new assert.AssertionError({ message: `left behind: ${left.join(", ")}`, actual: cause });
    }
  }

  /** Closes all clients that the case has opened so far. */
  async closeAll(): Promise<void> {
    const closing = [...this.#managers.splice(0), ...this.#clients.splice(0)].map((open) => open.close());
    await this.within("the clients close", Promise.allSettled(closing));
  }
}

/** Watches a promise; its rejection counts as handled. */
export function observe<T>(promise: Promise<T>): Observed<T> {
  const observed: Observed<T> = { promise, state: "pending", reason: undefined };
  const settled = (state: "fulfilled" | "rejected", reason?: unknown): void => {
    observed.state = state;
    observed.reason = reason;
  };
  promise.then(
    () => settled("fulfilled"),
    (reason: unknown) => settled("rejected", reason),
  );
  return observed;
}

/** A snapshot that does not change any more: a store may give live views. */
export function copied({ self, ahead }: Snapshot): Snapshot {
  const { count, weight, nearest, nearestWriter } = ahead;
  return {
    self: copiedEntry(self),
    ahead: {
      count,
      weight,
      nearest: nearest === null ? null : copiedEntry(nearest),
      nearestWriter: nearestWriter === null ? null : copiedEntry(nearestWriter),
    },
  };
}

function copiedEntry(entry: Snapshot["self"]): Snapshot["self"] {
  const { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata } = entry;
  return { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata };
}
