/**
 * Listens for one client, on its channel and on those that shards.ts has, and wakes those who wait; what was missed while
 * nobody listened is looked up again.
 */
import type { Entry, Snapshot } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Link, Listening } from "./link.ts";
import { watchPulse } from "./pulse.ts";
import { readMessage, type Wake } from "./records.ts";
import { Shards } from "./shards.ts";

/** One who wants to hear. */
interface Watch {
  readonly self: Entry;
  readonly onChange: (fresh?: Snapshot) => void;
}

/** An entry of this client that waits in its queue. */
interface Waiter {
  readonly slot: number;
  readonly seq: bigint;
  /** Since which connection it is surely told; 0 if it was sent while there was none. */
  readonly since: number;
  missed: Wake | null;
  /** Whether it has been asked about again: the answer may be older than a message that comes before it. */
  asked: boolean;
  /** The same list when the entry is asked about again. */
  readonly watches: Watch[];
}

/** The waiters of one client. */
export class Hub {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #channel: string;
  readonly #pingMs: number;
  readonly #onEvicted: (key: string, id: string) => void;
  /** Null but on a cluster. */
  readonly #shards: Shards | null;
  readonly #waiters = new Map<string, Waiter>();
  /** Messages for entries whose append has not been answered yet. */
  readonly #early = new Map<string, Wake>();
  #asking = 0;
  #listening: Listening | null = null;
  /** Counts the connections that listened; 0 while none does. */
  #connection = 0;
  #connections = 0;
  #attempts = 0;
  #again: Timer | null = null;
  #patience: Timer | null = null;
  #endPulse: (() => void) | null = null;
  #closed = false;
  #onSettled: (() => void) | null = null;

  constructor(
    link: Link,
    clock: Clock,
    channel: string,
    pingMs: number,
    onEvicted: (key: string, id: string) => void,
  ) {
    this.#link = link;
    this.#clock = clock;
    this.#channel = channel;
    this.#pingMs = pingMs;
    this.#onEvicted = onEvicted;
    const hear = (message: string): void => this.#heard(message);
    const missed = (slots: ReadonlySet<number>): void => this.#missed(slots);
    this.#shards = link.cluster ? new Shards(link, clock, channel, pingMs, hear, missed) : null;
  }

  /** Where the server is to tell entries in a slot. */
  channelOf(slot: number): string {
    return this.#shards?.channelOf(slot) ?? this.#channel;
  }

  /** On a cluster, whether messages stay on the node of their slot: null if they do, else why they do not. */
  async testShards(slot: number): Promise<string | null> {
    return (await this.#shards?.test(slot)) ?? null;
  }

  /** The connection that listens now; 0 if none does. */
  get connection(): number {
    return this.#connection;
  }

  /** Begins to listen; calls back once, when it listens, has failed for the first time, or has tried for a while. */
  start(onSettled: () => void): void {
    if (this.#attempts > 0 || this.#closed) return;
    this.#onSettled = onSettled;
    // On a cluster another node may answer than the one that this waits for.
    this.#patience = this.#clock.after(this.#pingMs / 4, () => this.#settled());
    this.#listen();
  }

  #listen(): void {
    this.#again = null;
    if (this.#closed) return;
    this.#attempts += 1;
    let listening: Listening;
    const down = (): void => {
      if (this.#listening === listening) this.#lost();
    };
    try {
      listening = this.#link.listen({ onMessage: (message) => this.#heard(message), onDown: down });
    } catch {
      return this.#lost();
    }
    this.#listening = listening;
    listening.subscribe(this.#channel).then(
      () => this.#listening === listening && this.#stands(),
      () => down(),
    );
    this.#endPulse = watchPulse(listening, this.#clock, this.#pingMs, down);
  }

  #stands(): void {
    this.#attempts = 1;
    this.#connection = ++this.#connections;
    this.#settled();
    // What was published meanwhile is lost, also before the first connection if it took more than one try: all look for themselves.
    this.#wakeAll();
  }

  #lost(): void {
    this.#connection = 0;
    this.#listening?.close();
    this.#listening = null;
    this.#endPulse?.();
    this.#settled();
    const delayMs = Math.min(25 * 2 ** Math.min(this.#attempts, 6), 1_000) * (0.5 + Math.random());
    this.#again = this.#clock.after(delayMs, () => this.#listen());
  }

  #settled(): void {
    this.#patience?.cancel();
    this.#onSettled?.();
    this.#onSettled = null;
  }

  #heard(message: string): void {
    const read = readMessage(message);
    if (read === null || this.#closed) return;
    if ("evicted" in read) return this.#onEvicted(read.evicted.key, read.evicted.id);
    const { wake } = read;
    const waiter = this.#waiters.get(wake.id);
    if (waiter?.seq === wake.seq) this.#wake(waiter, wake);
    else if (this.#asking > 0) this.#early.set(wake.id, wake);
  }

  #wake(waiter: Waiter, wake: Wake): void {
    if (waiter.watches.length === 0) {
      waiter.missed = wake;
      return;
    }
    this.forget(wake.id);
    if (waiter.asked && this.#asking > 0) this.#early.set(wake.id, wake);
    for (const { self, onChange } of waiter.watches) onChange({ self, ahead: wake.ahead });
  }

  /** All look for themselves, or all in some slots. */
  #wakeAll(slots?: ReadonlySet<number>): void {
    const waiters = [...this.#waiters];
    for (const [id, { slot, watches }] of waiters) {
      if (watches.length === 0 || slots?.has(slot) === false) continue;
      this.forget(id);
      for (const { onChange } of watches) onChange();
    }
  }

  /** Messages in these slots may be lost; also for those whose append is under way, or who do not watch yet. */
  #missed(slots: ReadonlySet<number>): void {
    if (this.#connection > 0) this.#connection = ++this.#connections;
    this.#wakeAll(slots);
  }

  /** An append of this entry is under way: it may be told before it is answered. */
  asks(id: string): void {
    this.#asking += 1;
    const waiter = this.isQuiet ? undefined : this.#waiters.get(id);
    if (waiter !== undefined) waiter.asked = true;
  }

  /** An append was answered. */
  answered(): void {
    this.#asking -= 1;
    if (this.#asking === 0 && this.#early.size > 0) this.#early.clear();
  }

  /** An entry waits in a slot; its append was sent while `since` listened. Called before `answered`. */
  waits(slot: number, id: string, seq: bigint, since: number): void {
    const early = this.#early.get(id);
    const missed = early?.seq === seq ? early : null;
    const { asked = false, watches = [] } = this.#waiters.get(id) ?? {};
    this.#put(id, { slot, seq, since, missed, asked, watches });
  }

  #put(id: string, waiter: Waiter): void {
    if (!this.#waiters.has(id)) this.#shards?.waits(waiter.slot);
    this.#waiters.set(id, waiter);
  }

  /** Whether no entry of this client is known to wait behind others. */
  get isQuiet(): boolean {
    return this.#waiters.size === 0;
  }

  /** Whether this one is. */
  isWaiting(id: string): boolean {
    return this.#waiters.has(id);
  }

  /** An entry has left its queue, or is about to. */
  forget(id: string): void {
    if (this.#early.size > 0) this.#early.delete(id);
    const known = this.#waiters.get(id);
    if (known === undefined) return;
    this.#waiters.delete(id);
    this.#shards?.leaves(known.slot);
  }

  /** Calls back when an entry may have been granted; at once if that may have been missed. */
  watch(slot: number, self: Entry, onChange: (fresh?: Snapshot) => void): () => void {
    const watch: Watch = { self, onChange };
    const known = this.#waiters.get(self.id);
    if (known?.seq === self.seq && known.missed !== null) {
      this.forget(self.id);
      onChange({ self, ahead: known.missed.ahead });
      return () => {};
    }
    const sure = known?.seq === self.seq && known.since === this.#connection && known.since > 0;
    const { asked = false, watches = [] } = known ?? {};
    const unsure: Waiter = { slot, seq: self.seq, since: 0, missed: null, asked, watches };
    const waiter = sure ? known : unsure;
    if (!sure) this.#put(self.id, waiter);
    waiter.watches.push(watch);
    // Sent before this connection listened: a wake-up may be lost. Without a connection, all are called when there is one.
    if (!sure && this.#connection > 0) queueMicrotask(() => waiter.watches.includes(watch) && onChange());
    return () => {
      const at = waiter.watches.indexOf(watch);
      if (at >= 0) waiter.watches.splice(at, 1);
      if (waiter.watches.length === 0 && this.#waiters.get(self.id) === waiter && !sure) this.forget(self.id);
    };
  }

  close(): void {
    this.#closed = true;
    this.#connection = 0;
    this.#again?.cancel();
    this.#patience?.cancel();
    this.#endPulse?.();
    this.#listening?.close();
    this.#listening = null;
    this.#shards?.close();
    this.#waiters.clear();
    this.#early.clear();
    this.#onSettled = null;
  }
}
