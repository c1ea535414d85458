/** The calls of the seam on independent Redis servers: a majority decides. How each call is decided is written beside it. */
import type {
  Admissible,
  Backend,
  Browsable,
  Entry,
  Examinable,
  Finding,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import { type Clock, type Random, systemClock } from "../../core/clock.ts";
import { invalid, type LockError } from "../../core/errors.ts";
import { type Health, unfitnessOf } from "../redis/fitness.ts";
import type { Link } from "../redis/link.ts";
import { wholeMs } from "../redis/records.ts";
import { examineNodes } from "./examine.ts";
import { closed, redlockError } from "./failures.ts";
import { Fleet } from "./fleet.ts";
import { Hints } from "./hints.ts";
import { Holdings } from "./holdings.ts";
import { evictedKeyOf, isOwnKey, keyOf } from "./keys.ts";
import { list, names } from "./listing.ts";
import { Node } from "./node.ts";
import { mostNodes } from "./quorum.ts";
import { evict, remove } from "./removal.ts";
import { extend } from "./renewal.ts";
import { Requests } from "./requests.ts";
import { redlockTraits } from "./traits.ts";
import { Waiters } from "./waiters.ts";

/** How a client of the nodes is set up. */
export interface Settings {
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly quarantineMs: number;
  readonly fencing: boolean;
  readonly health: Health;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

/** A server, and what it is called in messages. */
export interface Place {
  readonly label: string;
  readonly link: Link;
}

/** One client of locks on several independent Redis servers. */
export class RedlockBackend implements Backend, Browsable, Examinable, Admissible {
  readonly name = "redlock";
  readonly place: string;
  readonly traits: Traits;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #fleet: Fleet;
  readonly #hints: Hints;
  readonly #waiters: Waiters;
  readonly #holdings: Holdings;
  readonly #requests: Requests;
  #closed = false;

  /** @internal Made by redlockBackend. */
  constructor(places: readonly Place[], settings: Settings) {
    const { clock = systemClock, random = Math.random, fencing, quarantineMs, deadlineMs } = settings;
    if (places.length > mostNodes)
      throw invalid(`there can be ${mostNodes} nodes at most`, { backend: "redlock" });
    this.place = places.map(({ label }) => label).join();
    this.#settings = settings;
    this.#clock = clock;
    this.traits = redlockTraits(fencing, quarantineMs > 0);
    const nodes = places.map(
      ({ label, link }, index) => new Node(index, label, link, { clock, deadlineMs, quarantineMs }),
    );
    this.#fleet = new Fleet(nodes, clock, deadlineMs);
    this.#hints = new Hints(nodes, clock, random, {
      hint: (key, id) => {
        this.#waiters.hint(key, id);
        this.#holdings.hint(key, id);
      },
      stands: (key, node) => {
        // What was told before is lost: look.
        this.#waiters.hint(key, null);
        this.#holdings.stands(key, node);
      },
    });
    this.#waiters = new Waiters(clock, random, this.#hints);
    this.#holdings = new Holdings(clock, this.#hints, settings.prefix);
    this.#requests = new Requests({
      fleet: this.#fleet,
      clock,
      random,
      fencing,
      waiters: this.#waiters,
      holdings: this.#holdings,
    });
  }

  /** @internal Resolves when a majority answers. Rejects with LOCK_UNAVAILABLE. */
  async ready(): Promise<void> {
    this.#open();
    await this.#fleet.ready();
  }

  append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    let key: string;
    try {
      this.#open();
      this.#check(entry);
      key = this.#keyOf(queue);
    } catch (error) {
      return Promise.reject(error);
    }
    const first = this.#fleet.firstReady();
    if (first === null) return this.#requests.ask(queue, key, entry);
    return first.then(() => this.#requests.ask(queue, key, entry));
  }

  #check({ id, mode, permits, ttlMs }: NewEntry): void {
    if (permits !== undefined)
      throw unsupported("semaphores: of three holders, each may have two of three nodes");
    if (mode === "read")
      throw unsupported("shared locks: a majority of nodes does not make sure who is with whom");
    if (id === "" || id.includes("\0")) throw invalid("an entry's id must have text, without NUL");
    this.#checkTtl(ttlMs);
  }

  #keyOf(queue: string): string {
    const key = keyOf(this.#settings.prefix, queue);
    if (!isOwnKey(key)) return key;
    throw invalid(
      `redlock: the key of this lock would be ${JSON.stringify(key)}: what starts like this is kept for the backend itself`,
      { backend: "redlock" },
    );
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
      key: this.#keyOf(queue),
      evictedKey: evictedKeyOf(prefix, id),
      id,
      seq,
      ttlMs: wholeMs(ttlMs),
    };
    const restOf = (): string | null => this.#holdings.restOf(id) ?? null;
    return extend(this.#fleet, asked, restOf, fencing);
  }

  async remove(queue: string, id: string, evicts = false, seq?: bigint): Promise<boolean> {
    this.#open();
    const { prefix } = this.#settings;
    const leaving = { key: this.#keyOf(queue), id, seq: seq === undefined ? "" : String(seq) };
    if (evicts) return evict(this.#fleet, leaving, evictedKeyOf(prefix, id));
    const rest = this.#holdings.take(id);
    const waited = this.#waiters.leave(id);
    // All that a waiter has tried was undone.
    if (waited && !this.#requests.has(id)) return true;
    const removed = remove(this.#fleet, leaving, rest);
    this.#waiters.released(leaving.key, id);
    return removed;
  }

  async list(queue: string): Promise<readonly Entry[]> {
    this.#open();
    return list(this.#fleet, this.#clock, this.#keyOf(queue));
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

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#holdings.onEvicted = listener;
  }

  async queues(prefix: string): Promise<readonly string[]> {
    await this.ready();
    return names(this.#fleet, this.#clock, this.#settings.prefix, prefix);
  }

  admit(): Promise<readonly Finding[]> {
    return unfitnessOf(this, this.#settings.health);
  }

  async examine(): Promise<readonly Finding[]> {
    this.#open();
    return examineNodes(this.#fleet, this.#clock, this.#settings);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#waiters.close();
    this.#holdings.close();
    this.#hints.close();
    await this.#fleet.close();
  }

  #open(): void {
    if (this.#closed) throw closed();
    this.#fleet.start();
  }
}

function unsupported(what: string): LockError {
  return redlockError("LOCK_UNSUPPORTED", `it has no ${what}; use redis, postgres or etcd for them`);
}
