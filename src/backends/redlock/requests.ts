/** Requests of one client for locks: each is an attempt, or several where nobody won; and what a waiter is told of where it stands. */
import type { Entry, NewEntry, Snapshot } from "../../core/backend.ts";
import type { Clock, Random } from "../../core/clock.ts";
import { nothingAhead } from "../../core/grant.ts";
import { wholeMs } from "../redis/records.ts";
import { acquire, type Asked, type Outcome } from "./acquisition.ts";
import type { Fleet } from "./fleet.ts";
import type { Holdings } from "./holdings.ts";
import { Leftovers } from "./leftovers.ts";
import { Numbers } from "./numbers.ts";
import { entryOf, ownEntry, packRest } from "./values.ts";
import type { Waiters } from "./waiters.ts";

/** Who holds before anybody has said; looked at again after a while. */
const unknownHolder: Entry = {
  id: "",
  owner: { client: "", host: "", pid: 0 },
  mode: "write",
  weight: 1,
  seq: 0n,
  expiresInMs: 1_000,
  ageMs: 0,
};

/** How often a request that does not wait tries again when several have tried at once and none has won. */
const collisionTries = 4;

/** What requests need to know of their client. */
export interface Requester {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly random: Random;
  readonly fencing: boolean;
  readonly waiters: Waiters;
  readonly holdings: Holdings;
}

/** The requests of one client. */
export class Requests {
  readonly #client: Requester;
  readonly #numbers: Numbers;
  /** Those that are under way, by id: asked for again, they are the same. */
  readonly #asking = new Map<string, Promise<Snapshot | null>>();
  /** What is still leaving the nodes after an attempt in vain, by id. */
  readonly #leftovers = new Leftovers();

  constructor(client: Requester) {
    this.#client = client;
    this.#numbers = new Numbers(client.fleet.nodes, client.clock, client.fencing);
  }

  /** Whether a request for this entry is under way. */
  has(id: string): boolean {
    return this.#asking.has(id);
  }

  /** Asks the nodes for a lock; whoever comes after others of this client waits behind them, and asks nobody. */
  ask(queue: string, key: string, entry: NewEntry): Promise<Snapshot | null> {
    const { waiters, holdings } = this.#client;
    const { id } = entry;
    const known = this.#asking.get(id);
    if (known !== undefined) return known;
    if (entry.onlyIfGranted !== true) {
      const isNew = !waiters.has(id) && !holdings.has(id);
      const isBehind = isNew && waiters.isQueue(key);
      waiters.join(key, id);
      if (isBehind) return Promise.resolve(this.#waiting(entry, 0n));
    }
    const asking = this.#ask(queue, key, entry);
    this.#asking.set(id, asking);
    return asking;
  }

  async #ask(queue: string, key: string, entry: NewEntry): Promise<Snapshot | null> {
    const { waiters, holdings, clock, fencing } = this.#client;
    const { id } = entry;
    const rest = packRest(entry, clock.wallMs());
    const ttlMs = wholeMs(entry.ttlMs);
    const tries = entry.onlyIfGranted === true ? collisionTries : 1;
    let outcome: Outcome;
    try {
      for (let count = 1; ; count++) {
        const over = this.#leftovers.clear(id);
        if (over !== null) await over;
        waiters.asks(id);
        outcome = await this.#attempt({
          key,
          id,
          ttlMs,
          number: this.#numbers.next(),
          fenced: fencing,
          rest,
        });
        if (outcome.kind === "granted" || outcome.holder !== null || count === tries) break;
        // Several have tried at once, and none has won.
        await this.#pause(2 ** count);
      }
    } catch (error) {
      waiters.leave(id);
      throw error;
    } finally {
      this.#asking.delete(id);
    }
    if (outcome.kind === "granted") {
      waiters.leave(id);
      this.#numbers.raise(outcome.seq);
      holdings.add(id, queue, key, rest);
      return { self: ownEntry(entry, outcome.seq, outcome.lifeMs), ahead: nothingAhead };
    }
    if (entry.onlyIfGranted === true) return null;
    waiters.busy(id, outcome.holder);
    return this.#waiting(entry, outcome.highest);
  }

  #attempt(asked: Asked): Promise<Outcome> {
    const { fleet, clock } = this.#client;
    return acquire(fleet, clock, asked, (leftover) => this.#leftovers.add(leftover));
  }

  #pause(mostMs: number): Promise<void> {
    const { clock, random } = this.#client;
    return new Promise((resolve) => {
      clock.after(mostMs * random(), resolve);
    });
  }

  /** Where a waiter stands. The seq is only known to be above that of the holder: it gets another one when it is granted. */
  #waiting(entry: NewEntry, highest: bigint): Snapshot {
    const { waiters, clock } = this.#client;
    const { count, holder } = waiters.ahead(entry.id);
    const ttlMs = wholeMs(entry.ttlMs);
    const seen = holder === null ? unknownHolder : entryOf(holder.held, holder.leftMs, clock.wallMs());
    // Only the first of this client's line looks for itself when the holder's time is over.
    const nearest = count > 1 ? { ...seen, expiresInMs: ttlMs } : seen;
    const seq = (nearest.seq > highest ? nearest.seq : highest) + 1n;
    return {
      self: ownEntry(entry, seq, ttlMs),
      ahead: { count: Math.max(1, count), weight: Math.max(1, count), nearest, nearestWriter: nearest },
    };
  }
}
