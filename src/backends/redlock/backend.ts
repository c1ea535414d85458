/** The calls of the seam on independent Redis servers: a majority decides. How each call is decided is written beside it. */
import type {
  Backend,
  Browsable,
  Entry,
  Examinable,
  Fault,
  Finding,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import { type Clock, type Random, systemClock } from "../../core/clock.ts";
import { invalid, type LockError } from "../../core/errors.ts";
import { nothingAhead } from "../../core/grant.ts";
import type { Link } from "../redis/link.ts";
import { wholeMs } from "../redis/records.ts";
import { acquire, type Outcome } from "./acquisition.ts";
import { examineNodes } from "./examine.ts";
import { closed, redlockError } from "./failures.ts";
import { Fleet } from "./fleet.ts";
import { Hints } from "./hints.ts";
import { evictedKeyOf, keyOf } from "./keys.ts";
import { list, names } from "./listing.ts";
import { Node } from "./node.ts";
import { Numbers } from "./numbers.ts";
import { mostNodes } from "./quorum.ts";
import { evict, remove } from "./removal.ts";
import { extend } from "./renewal.ts";
import { entryOf, ownEntry, packRest } from "./values.ts";
import { Waiters } from "./waiters.ts";

/** How a client of the nodes is set up. */
export interface Settings {
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly quarantineMs: number;
  readonly fencing: boolean;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** A server, and what it is called in messages. */
export interface Place {
  readonly label: string;
  readonly link: Link;
}

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

/** What independent servers promise together. */
export function redlockTraits(fencing: boolean, quarantine: boolean): Traits {
  const restarts: readonly Fault[] = quarantine ? [] : ["store-restart"];
  return {
    scope: "network",
    order: "none",
    shared: false,
    counted: false,
    expiry: "store",
    tokens: fencing ? "more than any that a majority of nodes has seen" : null,
    wake: "push",
    exclusivityBrokenBy: [...restarts, "fail-over", "clock-step", "eviction"],
    tokensRegressAfter: [...restarts, "fail-over", "eviction"],
    callOrder: true,
  };
}

/** One client of locks on several independent Redis servers. */
export class RedlockBackend implements Backend, Browsable, Examinable {
  readonly name = "redlock";
  readonly traits: Traits;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #fleet: Fleet;
  readonly #hints: Hints;
  readonly #waiters: Waiters;
  readonly #numbers: Numbers;
  /** Appends that are under way, by id: asked for again, they are the same. */
  readonly #asking = new Map<string, Promise<Snapshot | null>>();
  /** What a node has to know that is repaired, for each entry that was granted, by id. */
  readonly #granted = new Map<string, string>();
  /** What is still leaving the nodes after an attempt in vain, by id. */
  readonly #letting = new Map<string, Promise<void>>();
  #closed = false;

  /** @internal Made by redlockBackend. */
  constructor(places: readonly Place[], settings: Settings) {
    const { clock = systemClock, random = Math.random, fencing, quarantineMs, deadlineMs } = settings;
    if (places.length > mostNodes)
      throw invalid(`there can be ${mostNodes} nodes at most`, { backend: "redlock" });
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
    this.traits = redlockTraits(fencing, quarantineMs > 0);
    const nodes = places.map(
      ({ label, link }, index) =>
        new Node(index, places.length, label, link, { clock, deadlineMs, quarantineMs }),
    );
    this.#fleet = new Fleet(nodes, clock, deadlineMs);
    this.#numbers = new Numbers(nodes, clock, fencing);
    this.#hints = new Hints(nodes, clock, random, (key, id) => this.#waiters.hint(key, id));
    this.#waiters = new Waiters(clock, random, this.#hints);
  }

  /** @internal Resolves when a majority answers. Rejects with LOCK_UNAVAILABLE. */
  async ready(): Promise<void> {
    this.#open();
    await this.#fleet.ready();
  }

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    try {
      this.#open();
      this.#check(entry);
    } catch (error) {
      return Promise.reject(error);
    }
    const { id } = entry;
    const known = this.#asking.get(id);
    if (known !== undefined) return known;
    const key = keyOf(this.#settings.prefix, queue);
    if (entry.onlyIfGranted !== true) {
      const isNew = !this.#waiters.has(id) && !this.#granted.has(id);
      const isBehind = isNew && this.#waiters.isQueue(key);
      this.#waiters.join(key, id);
      // Who comes after others of this client waits behind them, and asks nobody.
      if (isBehind) return Promise.resolve(this.#waiting(entry, 0n));
    }
    const asking = this.#ask(key, entry).finally(() => this.#asking.delete(id));
    this.#asking.set(id, asking);
    return asking;
  }

  #check({ id, mode, permits, ttlMs }: NewEntry): void {
    if (permits !== undefined)
      throw unsupported("semaphores: of three holders, each may have two of three nodes");
    if (mode === "read")
      throw unsupported("shared locks: a majority of nodes does not make sure who is with whom");
    if (id === "" || id.includes("\0")) throw invalid("an entry's id must have text, without NUL");
    this.#checkTtl(ttlMs);
  }

  /** What a node forgets in a restart must be over when it counts again. */
  #checkTtl(ttlMs: number): void {
    const { quarantineMs } = this.#settings;
    if (quarantineMs === 0 || ttlMs <= quarantineMs) return;
    throw invalid(
      `redlock: a ttl of ${ttlMs} ms is longer than the quarantine of ${quarantineMs} ms, after which a node that was restarted counts again: give a shorter ttl, or a longer quarantineMs to all clients`,
      { backend: "redlock" },
    );
  }

  async #ask(key: string, entry: NewEntry): Promise<Snapshot | null> {
    const { id } = entry;
    const rest = packRest(entry, this.#clock.wallMs());
    const asked = { key, id, ttlMs: wholeMs(entry.ttlMs), rest, fenced: this.#settings.fencing };
    let outcome: Outcome;
    try {
      for (let tries = 1; ; tries++) {
        const letting = this.#letting.get(id);
        if (letting !== undefined) await letting;
        this.#waiters.asks(id);
        outcome = await acquire(this.#fleet, this.#clock, { ...asked, number: this.#numbers.next() });
        if (outcome.kind === "busy") this.#letGo(id, outcome.over);
        const collided = outcome.kind === "busy" && outcome.holder === null;
        if (!collided || entry.onlyIfGranted !== true || tries === collisionTries) break;
        await this.#pause(2 ** tries * this.#random());
      }
    } catch (error) {
      this.#waiters.leave(id);
      throw error;
    }
    if (outcome.kind === "granted") {
      this.#waiters.leave(id);
      this.#numbers.raise(outcome.seq);
      this.#granted.set(id, rest);
      return { self: ownEntry(entry, outcome.seq, outcome.lifeMs), ahead: nothingAhead };
    }
    if (entry.onlyIfGranted === true) return null;
    this.#waiters.busy(id, outcome.holder);
    return this.#waiting(entry, outcome.highest);
  }

  /** The next attempt of the same entry waits until this one has left all nodes. */
  #letGo(id: string, over: Promise<void>): void {
    this.#letting.set(id, over);
    void over.then(() => this.#letting.get(id) === over && this.#letting.delete(id));
  }

  /** Where a waiter stands. The seq is only known to be above that of the holder: it gets another one when it is granted. */
  #waiting(entry: NewEntry, highest: bigint): Snapshot {
    const { count, holder } = this.#waiters.ahead(entry.id);
    const ttlMs = wholeMs(entry.ttlMs);
    const seen = holder === null ? unknownHolder : entryOf(holder.held, holder.leftMs, this.#clock.wallMs());
    // Only the first of this client's line looks for itself when the holder's time is over.
    const nearest = count > 1 ? { ...seen, expiresInMs: ttlMs } : seen;
    const seq = (nearest.seq > highest ? nearest.seq : highest) + 1n;
    return {
      self: ownEntry(entry, seq, ttlMs),
      ahead: { count: Math.max(1, count), weight: Math.max(1, count), nearest, nearestWriter: nearest },
    };
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    this.#open();
    return Promise.all(renewals.map((renewal) => this.#renew(renewal)));
  }

  async #renew({ queue, id, seq, ttlMs }: Renewal): Promise<Renewed> {
    // A waiter is in no store: it needs nobody to stay.
    if (this.#waiters.has(id)) return { outcome: "renewed", expiresInMs: wholeMs(ttlMs) };
    this.#checkTtl(ttlMs);
    const { prefix, fencing } = this.#settings;
    const asked = {
      key: keyOf(prefix, queue),
      evictedKey: evictedKeyOf(prefix, id),
      id,
      seq,
      ttlMs: wholeMs(ttlMs),
    };
    const restOf = (): string | null => (this.#closed ? null : (this.#granted.get(id) ?? null));
    return extend(this.#fleet, asked, restOf, fencing);
  }

  async remove(queue: string, id: string, evicts = false, seq?: bigint): Promise<boolean> {
    this.#open();
    const { prefix } = this.#settings;
    const leaving = { key: keyOf(prefix, queue), id, seq: seq === undefined ? "" : String(seq) };
    if (evicts) return evict(this.#fleet, leaving, evictedKeyOf(prefix, id));
    const rest = this.#granted.get(id);
    this.#granted.delete(id);
    const waited = this.#waiters.leave(id);
    // All that a waiter has tried was undone.
    if (waited && !this.#asking.has(id)) return true;
    const removed = remove(this.#fleet, leaving, rest);
    this.#waiters.released(leaving.key, id);
    return removed;
  }

  async list(queue: string): Promise<readonly Entry[]> {
    this.#open();
    return list(this.#fleet, this.#clock, keyOf(this.#settings.prefix, queue));
  }

  async watch(
    _queue: string,
    self: Entry,
    _target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Promise<() => void> {
    this.#open();
    return this.#waiters.watch(self.id, () => onChange());
  }

  async queues(prefix: string): Promise<readonly string[]> {
    await this.ready();
    return names(this.#fleet, this.#clock, this.#settings.prefix, prefix);
  }

  async examine(): Promise<readonly Finding[]> {
    this.#open();
    return examineNodes(this.#fleet, this.#clock, this.#settings);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#waiters.close();
    this.#hints.close();
    this.#granted.clear();
    await this.#fleet.close();
  }

  #open(): void {
    if (this.#closed) throw closed();
    this.#fleet.start();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(ms, resolve);
    });
  }
}

function unsupported(what: string): LockError {
  return redlockError("LOCK_UNSUPPORTED", `it has no ${what}; use redis, postgres or etcd for them`);
}
