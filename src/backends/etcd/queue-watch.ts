/**
 * One watch on one queue for all who wait there in this client: it follows the entries of the queue and tells a waiter
 * when its target has left. It is a hint: whoever is told asks the store before it believes anything.
 */
import type { Entry, Snapshot } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { nothingAhead, ruleOf } from "../../core/grant.ts";
import type { Calls } from "./calls.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import { eventType, type WatchEvent } from "./client/messages/watch.ts";
import * as methods from "./client/methods.ts";
import type { Watch } from "./client/watch-stream.ts";
import type { KeyRange } from "./layout.ts";
import { inOrder } from "./steps.ts";

/** Somebody who waits. */
export interface Waiter {
  readonly self: Entry;
  /** The seq of the entry whose leaving is waited for; null: until there is room. */
  readonly target: bigint | null;
  /**
   * The target has left, or there is room. `fresh` says that nobody blocks it any more, as far as is seen here; `seen`, that
   * the store has said so of its own entry at that moment.
   */
  tell(fresh: Snapshot | undefined, seen?: boolean): void;
  /** Its own entry has left the queue. */
  gone(): void;
}

/** What a watch needs to know of its queue. */
export interface QueueWatchOptions {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly range: KeyRange;
  readonly show: (kv: KeyValue) => Entry;
  /** Nobody has waited for a while, and the watch has ended. */
  readonly onIdle: () => void;
}

/** How long a watch outlives its last waiter, in milliseconds: the next one often comes soon. */
const lingerMs = 1_000;
/** How long after a failure the watch is begun anew, in milliseconds; doubled each time. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** The watch on one queue. */
export class QueueWatch {
  readonly #options: QueueWatchOptions;
  /** The entries by seq, first to last; null while it is not known what is there. */
  #entries: Map<bigint, Entry> | null = null;
  /** The seqs of the entries, by key. */
  readonly #seqs = new Map<string, bigint>();
  /** Up to which revision the entries are known. */
  #revision = 0n;
  #early: WatchEvent[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #byTarget = new Map<bigint, Set<Waiter>>();
  readonly #bySelf = new Map<bigint, Waiter>();
  readonly #forRoom = new Set<Waiter>();
  readonly #leaving = new Set<bigint>();
  /** A new one for each try; what is told about an earlier one does not count. */
  #attempt: object | null = null;
  #watch: Watch | null = null;
  #pauseMs = firstPauseMs;
  #restart: Timer | null = null;
  #farewell: Timer | null = null;
  #closed = false;

  constructor(options: QueueWatchOptions) {
    this.#options = options;
  }

  /** Waits. Tells at once if the target has left already. Gives the function that ends the wait. */
  add(waiter: Waiter): () => void {
    this.#waiters.add(waiter);
    const peers = this.#peersOf(waiter);
    peers.add(waiter);
    this.#bySelf.set(waiter.self.seq, waiter);
    if (this.#attempt === null) this.#begin();
    else if (this.#entries !== null) this.#check(waiter);
    return () => {
      peers.delete(waiter);
      if (this.#bySelf.get(waiter.self.seq) === waiter) this.#bySelf.delete(waiter.self.seq);
      if (waiter.target !== null && peers.size === 0) this.#byTarget.delete(waiter.target);
      if (this.#waiters.delete(waiter) && this.#waiters.size === 0) this.#linger();
    };
  }

  /** Those who wait for the same. */
  #peersOf({ target }: Waiter): Set<Waiter> {
    if (target === null) return this.#forRoom;
    const peers = this.#byTarget.get(target) ?? new Set();
    this.#byTarget.set(target, peers);
    return peers;
  }

  /** Whoever waits for this entry, if it is one alone. */
  heirOf(seq: bigint): Waiter | undefined {
    const [heir, other] = this.#byTarget.get(seq) ?? [];
    return other === undefined ? heir : undefined;
  }

  /** Those who wait ahead of an entry and have not been told that they are gone, first to last. */
  aheadOf(seq: bigint): readonly Waiter[] {
    return inTheirOrder([...this.#bySelf.values()].filter(({ self }) => self.seq < seq));
  }

  /** Whoever waits with this entry is told that it is gone. */
  displaced(seq: bigint): void {
    const waiter = this.#bySelf.get(seq);
    this.#bySelf.delete(seq);
    waiter?.gone();
  }

  /** This client is about to take an entry out, and will say when it has: what the store tells of it can wait. */
  leaving(seq: bigint): void {
    this.#leaving.add(seq);
  }

  /** It could not, as far as it knows: what the store has told meanwhile counts. */
  stayed(seq: bigint): void {
    this.#leaving.delete(seq);
    if (this.#entries?.has(seq) === false) this.#tellOf(seq);
  }

  /** This client has taken an entry out. `heir` is one of those who wait for it, whose own entry was there at that moment. */
  left(seq: bigint, heir?: Waiter): void {
    this.#leaving.delete(seq);
    this.#entries?.delete(seq);
    this.#tellOf(seq, heir);
  }

  close(): void {
    this.#closed = true;
    this.#farewell?.cancel();
    this.#restart?.cancel();
    for (const waiters of [this.#waiters, this.#byTarget, this.#bySelf, this.#forRoom]) waiters.clear();
    this.#end();
  }

  #linger(): void {
    this.#farewell?.cancel();
    this.#farewell = this.#options.clock.after(lingerMs, () => {
      if (this.#waiters.size > 0) return;
      this.close();
      this.#options.onIdle();
    });
  }

  // 1. Watch from now on, 2. list what is there, 3. catch up with what was told meanwhile. A watch that began at an
  // earlier revision would be served last, a tenth of a second late.

  #begin(): void {
    const attempt = {};
    this.#attempt = attempt;
    const current = (): boolean => this.#attempt === attempt && !this.#closed;
    const watching = this.#options.calls.client.watch(this.#options.range, {
      created: () => {
        if (current()) void this.#list(current);
      },
      events: (events, revision) => {
        if (current()) this.#follow(events, revision);
      },
      ended: () => {
        if (current()) this.#again();
      },
    });
    watching.then(
      (watch) => {
        if (current()) this.#watch = watch;
        else watch.cancel();
      },
      () => {
        if (current()) this.#again();
      },
    );
  }

  async #list(current: () => boolean): Promise<void> {
    const { calls, range, show } = this.#options;
    try {
      const { header, kvs } = await calls.read("listing a queue", methods.range, inOrder(range));
      if (!current()) return;
      this.#revision = header?.revision ?? 0n;
      this.#entries = new Map(kvs.map((kv) => [kv.createRevision, show(kv)]));
      for (const { key, createRevision } of kvs) this.#seqs.set(textOf(key), createRevision);
      this.#pauseMs = firstPauseMs;
      const early = this.#early.filter(({ kv }) => (kv?.modRevision ?? 0n) > this.#revision);
      this.#early = [];
      this.#follow(early, this.#revision);
      for (const waiter of inTheirOrder([...this.#waiters])) this.#check(waiter);
    } catch {
      if (current()) this.#again();
    }
  }

  /** Whatever ended the watch: what was missed is found by listing again. */
  #again(): void {
    this.#end();
    this.#restart = this.#options.clock.after(this.#pauseMs, () => this.#begin());
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
  }

  #end(): void {
    this.#attempt = {};
    this.#entries = null;
    this.#seqs.clear();
    this.#early = [];
    this.#watch?.cancel();
    this.#watch = null;
  }

  #follow(events: readonly WatchEvent[], revision: bigint): void {
    if (this.#entries === null) {
      this.#early.push(...events);
      return;
    }
    for (const { type, kv } of events) {
      if (kv === undefined) continue;
      const key = textOf(kv.key);
      if (kv.modRevision > this.#revision) this.#revision = kv.modRevision;
      if (type === eventType.put) {
        // A key that is written again keeps its place.
        this.#entries.set(kv.createRevision, this.#options.show(kv));
        this.#seqs.set(key, kv.createRevision);
      } else {
        this.#gone(key);
      }
    }
    if (revision > this.#revision) this.#revision = revision;
  }

  #gone(key: string): void {
    const seq = this.#seqs.get(key);
    this.#seqs.delete(key);
    if (seq === undefined) return;
    const wasThere = this.#entries?.delete(seq);
    if (wasThere && !this.#leaving.has(seq)) this.#tellOf(seq);
  }

  #tellOf(seq: bigint, heir?: Waiter): void {
    // Whoever was displaced hears of it before the next in line, and joins again before it.
    this.displaced(seq);
    for (const waiter of this.#byTarget.get(seq) ?? []) waiter.tell(this.#fresh(waiter), waiter === heir);
    for (const waiter of this.#forRoom) this.#checkRoom(waiter);
  }

  /** Tells a waiter whose target has left, or who has itself: it is not there, although all up to its creation is known. */
  #check(waiter: Waiter): void {
    const { target, self } = waiter;
    if (this.#revision > self.seq && this.#entries?.has(self.seq) === false) this.displaced(self.seq);
    else if (target === null) this.#checkRoom(waiter);
    else if (this.#revision >= target && this.#entries?.has(target) === false) {
      waiter.tell(this.#fresh(waiter));
    }
  }

  #checkRoom(waiter: Waiter): void {
    const fresh = this.#fresh(waiter);
    if (fresh !== undefined) waiter.tell(fresh);
  }

  /** What is ahead of a waiter if that grants it. */
  #fresh({ self }: Waiter): Snapshot | undefined {
    if (!this.#entries?.has(self.seq)) return undefined;
    const rule = ruleOf(self);
    let ahead = nothingAhead;
    for (const entry of this.#entries.values()) {
      if (entry.seq === self.seq) return { self, ahead };
      ahead = {
        count: ahead.count + 1,
        weight: ahead.weight + entry.weight,
        nearest: entry,
        nearestWriter: entry.mode === "write" ? entry : ahead.nearestWriter,
      };
      // The rules are monotone: what blocks it now still does when more is ahead.
      if (!rule.grants(self, ahead)) return undefined;
    }
    return undefined;
  }
}

function inTheirOrder(waiters: readonly Waiter[]): readonly Waiter[] {
  return waiters.toSorted((one, other) => (one.self.seq < other.self.seq ? -1 : 1));
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString();
}
