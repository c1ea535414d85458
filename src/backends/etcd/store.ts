/** What all calls of one client share: keys, calls, leases, and the entries that this client has put into etcd. */
import type { Entry, NewEntry } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { Calls } from "./calls.ts";
import { Changes, inParts } from "./changes.ts";
import type { EtcdClient } from "./client/client.ts";
import type { Init } from "./client/codec.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import type { RequestOp, ResponseOp } from "./client/messages/txn.ts";
import * as methods from "./client/methods.ts";
import { entryOf } from "./entry-text.ts";
import { Guards } from "./guards.ts";
import type { Layout } from "./layout.ts";
import { type Lease, Leases, type OwnEntry } from "./lease.ts";
import { Lines } from "./lines.ts";
import { QueueWatch } from "./queue-watch.ts";
import { removal } from "./steps.ts";

/** How a store is made, by etcdBackend. */
export interface StoreParts {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
  /** How long a call that surely was not carried out is tried again, in milliseconds. */
  readonly patienceMs: number;
}

/** How many steps one transaction has at most; etcd's own limit is 128 unless it is told otherwise. */
const stepsPerTxn = 100;

/** How often an entry that may have arrived late is taken out. */
const doubtfulSweeps = 3;

/** One client's view of a cluster. */
export class EtcdStore {
  readonly layout: Layout;
  readonly clock: Clock;
  readonly calls: Calls;
  readonly changes: Changes;
  readonly leases: Leases;
  readonly guards: Guards;
  readonly lines: Lines = new Lines();
  readonly #own = new Map<string, OwnEntry>();
  readonly #byKey = new Map<string, OwnEntry>();
  /** The keys that appends under way want to put, and the ids of their entries. */
  readonly #joining = new Map<string, string>();
  readonly #watches = new Map<string, QueueWatch>();

  constructor({ client, layout, clock, patienceMs }: StoreParts) {
    this.layout = layout;
    this.clock = clock;
    this.calls = new Calls(client, clock, patienceMs);
    this.changes = new Changes(this.calls);
    this.leases = new Leases(this.calls, clock, (entries) => void this.expire(entries).catch(() => {}));
    this.guards = new Guards(client, clock);
  }

  /** The entry that this client has put, or may have. */
  own(queue: string, id: string): OwnEntry | undefined {
    return this.#own.get(this.#nameOf(queue, id));
  }

  /** The entry of this client that has a key now, as far as it knows. */
  ownAt(key: string): OwnEntry | undefined {
    return this.#byKey.get(key);
  }

  /** Whether another append is about to put an entry at a key. */
  isWanted(key: string, id: string): boolean {
    return (this.#joining.get(key) ?? id) !== id;
  }

  /** Lets others know, while the work goes on, that an entry is about to be put at a key. */
  async wanting<T>(key: string, id: string, work: () => Promise<T>): Promise<T> {
    this.#joining.set(key, id);
    try {
      return await work();
    } finally {
      this.#joining.delete(key);
    }
  }

  /** The entry that has this seq: no two of one queue have the same. */
  ownBySeq(queue: string, seq: bigint): OwnEntry | undefined {
    for (const own of this.#own.values()) if (own.queue === queue && own.seq === seq) return own;
    return undefined;
  }

  /** Remembers an entry until it has left; `seq` is null where it may or may not be there. */
  remember(queue: string, id: string, key: string, seq: bigint | null, lease: Lease): OwnEntry {
    const before = this.own(queue, id);
    const sweeps = seq === null ? doubtfulSweeps : 1;
    const [until, sweepAt, expired, ended] = [0, 0, false, null];
    const own: OwnEntry = { queue, id, key, seq, lease, until, sweepAt, sweeps, expired, ended };
    // The lease must not seem empty in between.
    this.leases.hold(own);
    if (before !== undefined) this.forget(before);
    this.#own.set(this.#nameOf(queue, id), own);
    this.#byKey.set(key, own);
    if (seq !== null) this.guards.add(own);
    return own;
  }

  forget(own: OwnEntry): void {
    const name = this.#nameOf(own.queue, own.id);
    if (this.#own.get(name) === own) this.#own.delete(name);
    if (this.#byKey.get(own.key) === own) this.#byKey.delete(own.key);
    this.guards.remove(own);
    this.leases.drop(own);
  }

  /** Moves an entry to another lease. */
  move(own: OwnEntry, lease: Lease): void {
    this.leases.drop(own);
    own.lease = lease;
    this.leases.hold(own);
  }

  /** Takes out entries that nobody has renewed in time. */
  async expire(entries: readonly OwnEntry[]): Promise<void> {
    for (const own of entries) own.expired = true;
    const due = await Promise.all(entries.map((own) => this.#standing(own)));
    await this.transactAll(
      "taking out what has expired",
      due.flatMap((kv) => (kv === undefined ? [] : [removal(kv.key, kv.createRevision)])),
      "write",
    );
    for (const own of entries) {
      own.sweeps -= 1;
      if (own.seq !== null) this.watchOn(own.queue)?.left(own.seq);
      if (own.sweeps <= 0) this.forget(own);
    }
  }

  /** Where an entry is, as far as is known: of one that may have arrived the store is asked. */
  async #standing(
    own: OwnEntry,
  ): Promise<{ readonly key: Uint8Array | string; readonly createRevision: bigint } | undefined> {
    const { queue, id, key, seq } = own;
    if (seq !== null) return { key, createRevision: seq };
    const { kvs } = await this.calls.read("a look at an entry", methods.range, { key });
    // What is there may have been put by a further try, which counts.
    if (this.own(queue, id) !== own || this.#joining.get(key) === id) return undefined;
    const show = this.show(queue);
    return kvs.find((kv) => show(kv).id === id);
  }

  /** Sends steps that do not depend on each other, many at once; answers in their order, and the latest election term. */
  async transactAll(
    what: string,
    all: readonly Init<RequestOp>[],
    kind: "read" | "write",
  ): Promise<{ readonly responses: readonly ResponseOp[]; readonly term: bigint }> {
    const answers = await Promise.all(
      inParts(all, stepsPerTxn).map((success) => this.calls[kind](what, methods.transact, { success })),
    );
    const terms = answers.map(({ header }) => header?.raftTerm ?? 0n);
    return {
      responses: answers.flatMap(({ responses }) => responses),
      term: terms.reduce((latest, term) => (term > latest ? term : latest), 0n),
    };
  }

  /** How entries of a queue are shown. */
  show(queue: string): (kv: KeyValue) => Entry {
    const wallMs = this.clock.wallMs();
    return (kv) => entryOf(this.layout, queue, kv, wallMs);
  }

  /** An entry of ours, as it is shown to whoever asked at `startedAt`. */
  showOwn(asked: NewEntry, own: OwnEntry, startedAt: number): Entry {
    return shown(asked, own.seq ?? 0n, leftOf(own, startedAt));
  }

  /** What is left of the life of a lease, whoever it belongs to, in milliseconds; the server rounds it down. */
  async lifeOf(leaseId: bigint): Promise<number> {
    const { ttl } = await this.calls.read("asking for a lease", methods.leaseTimeToLive, { id: leaseId });
    return Math.max(0, Number(ttl) * 1_000);
  }

  /** The watch on a queue, if there is one. */
  watchOn(queue: string): QueueWatch | undefined {
    return this.#watches.get(queue);
  }

  /** The watch on a queue. */
  watch(queue: string): QueueWatch {
    const { calls, clock } = this;
    let watch = this.#watches.get(queue);
    if (watch === undefined) {
      watch = new QueueWatch({
        calls,
        clock,
        range: this.layout.entries(queue),
        show: (kv) => entryOf(this.layout, queue, kv, clock.wallMs()),
        onIdle: () => this.#watches.delete(queue),
      });
      this.#watches.set(queue, watch);
    }
    return watch;
  }

  async close(): Promise<void> {
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
    this.guards.close();
    await this.leases.close();
    await this.calls.close();
    this.#own.clear();
  }

  #nameOf(queue: string, id: string): string {
    return this.layout.prefix(queue) + id;
  }
}

/** An entry as its maker knows it. */
export function shown(asked: NewEntry, seq: bigint, expiresInMs: number): Entry {
  const { id, owner, mode, weight, permits, metadata } = asked;
  return { id, owner, mode, weight, permits, metadata, seq, expiresInMs, ageMs: 0 };
}

/** How long an entry surely lives, counted from when somebody asked, as it counts itself. */
export function leftOf({ until, lease }: OwnEntry, startedAt: number): number {
  return Math.min(lease.lifeMs, Math.max(0, Math.floor(until - startedAt)));
}
