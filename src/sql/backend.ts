/** The calls of the seam on the routines of a SQL database: what PostgreSQL and MySQL have in common. */
import { randomBytes } from "node:crypto";
import type {
  Backend,
  Browsable,
  Entry,
  Examinable,
  Finding,
  Migratable,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../core/backend.ts";
import { systemClock, type Timer } from "../core/clock.ts";
import { LockError } from "../core/errors.ts";
import { type Database as Connectable, Lane, unavailable } from "./lane.ts";
import { Lookout } from "./lookout.ts";
import { appendRequest, entryOf, isPlace, microseconds, type ShownEntry, snapshotOf } from "./wire.ts";

/** What a database tells a client of its own accord. */
export interface Ear {
  /** Whether the database tells waiters from now on. */
  pushed(isPushed: boolean): void;
  /** An entry may hold now; `place` says where it stands, if it came along. */
  wake(id: string, place: unknown): void;
  evicted(queue: string, id: string): void;
  /** Whether anybody would miss it if nothing were told. */
  readonly wanted: boolean;
}

/** A SQL database with the routines of a schema. */
export interface Database extends Connectable, Examinable, Migratable {
  readonly traits: Traits;
  /** Begins to tell what happens on a channel, if the database can: gives the function that ends it. */
  listen?(channel: string, ear: Ear): () => Promise<void>;
}

/** How often a client takes out what has expired and nobody has met, in milliseconds. */
const sweepMs = 60_000;

/** One client of queues in the tables of a SQL database. */
export class SqlBackend implements Backend, Browsable, Examinable, Migratable {
  readonly name: string;
  readonly place: string | undefined;
  readonly #database: Database;
  /** Where the database tells this client that one of its entries may hold or was evicted. */
  readonly #channel: string = `holdfast_${randomBytes(9).toString("hex")}`;
  /** Appends, and what else there is while it has nothing to do. */
  readonly #front: Lane;
  /** Renewals and releases, so that they never wait for anything else. */
  readonly #back: Lane;
  /** Looks while an append is under way, where nobody is told: whoever is next does not wait for others who join. */
  readonly #aside: Lane;
  readonly #lookout: Lookout;
  /** For each queue: resolves when the removals that are under way have been answered. */
  readonly #leaving = new Map<string, Promise<unknown>>();
  /** Entries whose append has not been answered: whether somebody has evicted them already, who may see them sooner than we do. */
  readonly #joining = new Map<string, boolean>();
  /** Only where the database tells. */
  readonly onEvicted?: (listener: (queue: string, id: string) => void) => void;
  #onEvicted: ((queue: string, id: string) => void) | null = null;
  #endListening: (() => Promise<void>) | null = null;
  #sweeper: Timer | null = null;
  #closing: Promise<void> | null = null;

  /** @internal Made by the factories of the backends. */
  constructor(database: Database, deadlineMs: number, place: string | undefined) {
    this.name = database.name;
    this.place = place;
    this.#database = database;
    this.#front = new Lane(database, deadlineMs);
    this.#back = new Lane(database, deadlineMs);
    this.#aside = new Lane(database, deadlineMs);
    this.#lookout = new Lookout((queue, seq) => {
      const lane = this.#front.idle || database.listen !== undefined ? this.#front : this.#aside;
      return lane.call("look", { queue, seq: seq.toString() });
    });
    if (database.listen !== undefined) {
      this.onEvicted = (listener) => {
        this.#onEvicted = listener;
      };
    }
  }

  get traits(): Traits {
    return this.#database.traits;
  }

  async append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    this.#joining.set(entry.id, false);
    try {
      return await this.#append(queue, entry);
    } finally {
      // The caller knows of the entry a turn later.
      if (this.#joining.get(entry.id) === true)
        systemClock.after(0, () => this.#onEvicted?.(queue, entry.id));
      this.#joining.delete(entry.id);
    }
  }

  async #append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    this.#back.warm();
    if (this.#onEvicted !== null) this.#listen();
    // What was released before is free before: the two travel on different connections.
    const leaving = this.#leaving.get(queue);
    if (leaving !== undefined) await leaving;
    const { epoch } = this.#lookout;
    const again = this.#lookout.foundGone(entry.id);
    const place = await this.#front.call("append", appendRequest(queue, entry, this.#channel, again));
    this.#sweeper ??= systemClock.after(sweepMs * (0.5 + Math.random()), () => this.#sweep());
    if (!isPlace(place)) return null;
    if (place[8] === true) await this.#settle();
    const snapshot = snapshotOf(entry, place);
    if (epoch !== null && epoch === this.#lookout.epoch) this.#lookout.trust(snapshot.self, epoch);
    return snapshot;
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    this.#assertOpen();
    return Promise.all(
      renewals.map(async ({ queue, id, seq, ttlMs }): Promise<Renewed> => {
        const request = { queue, id, seq: seq.toString(), ttl: microseconds(ttlMs) };
        return this.#back.call("renew", request).then(renewedOf, (cause) => ({ outcome: "unknown", cause }));
      }),
    );
  }

  async remove(queue: string, id: string, evict = false, seq?: bigint): Promise<boolean> {
    this.#lookout.forget(id);
    const request = { queue, id, evict, seq: seq === undefined ? null : seq.toString() };
    // Whoever serves one connection only has all that it needs at hand.
    const lane = this.#front.idle ? this.#front : this.#back;
    const answer = lane.call("remove", request);
    this.#leaveInOrder(queue, answer);
    const removed = await answer;
    this.#lookout.nudge(queue);
    return Boolean(removed);
  }

  async list(queue: string): Promise<readonly Entry[]> {
    const shown = await this.#front.call("list", { queue });
    const entries = Array.isArray(shown) ? shown.map((each: ShownEntry) => entryOf(each)) : [];
    const live = entries.filter(({ expiresInMs }) => expiresInMs > 0);
    if (live.length < entries.length) this.#sweep();
    return live;
  }

  async queues(prefix: string): Promise<readonly string[]> {
    const names = await this.#front.call("queues", { prefix });
    return Array.isArray(names) ? names.map(String) : [];
  }

  watch(queue: string, self: Entry, _target: Entry | null, onChange: (fresh?: Snapshot) => void): () => void {
    this.#assertOpen();
    this.#listen();
    return this.#lookout.watch(queue, self, onChange);
  }

  examine(): Promise<readonly Finding[]> {
    return this.#database.examine().catch((error: unknown) => this.#fail(error));
  }

  migrate(): Promise<readonly number[]> {
    return this.#database.migrate().catch((error: unknown) => this.#fail(error));
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#sweeper?.cancel();
    this.#lookout.close();
    this.#onEvicted = null;
    const lanes = [this.#front, this.#back, this.#aside];
    await Promise.all([...lanes.map((lane) => lane.close()), this.#endListening?.()]);
  }

  /** An append that a crash might undo has not happened yet, as far as anybody is told. */
  async #settle(): Promise<void> {
    await this.#front.call("flush", {}).catch((cause: unknown) => {
      const text = `${this.name}: an append was not brought to disk, and may or may not last`;
      throw new LockError("LOCK_OUTCOME_UNKNOWN", text, { backend: this.name, cause });
    });
  }

  /** Lets appends to the queue that are called from now on wait for a removal that is under way. */
  #leaveInOrder(queue: string, removal: Promise<unknown>): void {
    const before = this.#leaving.get(queue);
    const settled = (): void => {
      if (this.#leaving.get(queue) === over) this.#leaving.delete(queue);
    };
    const over = (before === undefined ? removal : Promise.allSettled([before, removal])).then(
      settled,
      settled,
    );
    this.#leaving.set(queue, over);
  }

  #listen(): void {
    if (this.#closing === null)
      this.#endListening ??= this.#database.listen?.(this.#channel, this.#ear()) ?? null;
  }

  #ear(): Ear {
    const lookout = this.#lookout;
    return {
      pushed: (isPushed) => {
        lookout.setPushed(isPushed);
        if (isPushed) void this.#askForEvictions();
      },
      wake: (id, place) => lookout.wake(id, place),
      evicted: (queue, id) => {
        if (this.#joining.has(id)) this.#joining.set(id, true);
        else this.#onEvicted?.(queue, id);
      },
      get wanted() {
        return lookout.busy;
      },
    };
  }

  /** What was told before anybody listened is asked for once. */
  async #askForEvictions(): Promise<void> {
    if (this.#onEvicted === null) return;
    const evicted = await this.#back.call("evictions", { channel: this.#channel }).catch(() => []);
    if (!Array.isArray(evicted)) return;
    for (const [queue, id] of evicted) this.#onEvicted?.(String(queue), String(id));
  }

  #fail(error: unknown): never {
    throw unavailable(this.name, error);
  }

  #assertOpen(): void {
    if (this.#closing === null) return;
    throw new LockError("LOCK_CLOSED", `this client of ${this.name} was closed`, { backend: this.name });
  }

  #sweep(): void {
    this.#sweeper = null;
    // Whoever appends next sets it again; a sweep that fails is made up for by the next, or by another client.
    void this.#back.call("sweep", {}).catch(() => {});
  }
}

function renewedOf(leftUs: unknown): Renewed {
  if (typeof leftUs === "number") return { outcome: "renewed", expiresInMs: Math.max(0, leftUs / 1000) };
  return leftUs === false ? { outcome: "gone", evicted: true } : { outcome: "gone" };
}
