/** Listens on the channel of one client and wakes those who wait; what was missed while nobody listened is looked up again. */
import type { Entry, Snapshot } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Link, Listening } from "./link.ts";
import { readMessage, type Wake } from "./records.ts";

/** One who wants to hear. */
interface Watch {
  readonly self: Entry;
  readonly onChange: (fresh?: Snapshot) => void;
}

/** An entry of this client that waits in its queue. */
interface Waiter {
  readonly seq: bigint;
  /** Since which connection it is surely told; 0 if it was sent while there was none. */
  readonly since: number;
  missed: Wake | null;
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
  readonly #waiters = new Map<string, Waiter>();
  /** Messages for entries whose append has not been answered yet. */
  readonly #early = new Map<string, Wake>();
  #asking = 0;
  #listening: Listening | null = null;
  /** Counts the connections that listened; 0 while none does. */
  #connection = 0;
  #connections = 0;
  #attempts = 0;
  #timer: Timer | null = null;
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
  }

  /** The connection that listens now; 0 if none does. */
  get connection(): number {
    return this.#connection;
  }

  /** Begins to listen; calls back once, when it listens or has failed for the first time. */
  start(onSettled: () => void): void {
    if (this.#attempts > 0 || this.#closed) return;
    this.#onSettled = onSettled;
    this.#listen();
  }

  #listen(): void {
    this.#timer = null;
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
    this.#watchOver(listening);
  }

  #stands(): void {
    this.#attempts = 1;
    this.#connection = ++this.#connections;
    this.#settled();
    // What was published meanwhile is lost: all look for themselves.
    if (this.#connections > 1) this.#wakeAll();
  }

  #lost(): void {
    this.#connection = 0;
    this.#listening?.close();
    this.#listening = null;
    this.#timer?.cancel();
    this.#settled();
    const delayMs = Math.min(25 * 2 ** Math.min(this.#attempts, 6), 1_000) * (0.5 + Math.random());
    this.#timer = this.#clock.after(delayMs, () => this.#listen());
  }

  #settled(): void {
    this.#onSettled?.();
    this.#onSettled = null;
  }

  /** A connection may be dead without knowing it: asks now and then whether the server still answers. */
  #watchOver(listening: Listening): void {
    this.#timer = this.#clock.after(this.#pingMs, () => {
      if (this.#listening !== listening) return;
      this.#timer = this.#clock.after(this.#pingMs, () => this.#listening === listening && this.#lost());
      listening.ping().then(
        () => {
          if (this.#listening !== listening) return;
          this.#timer?.cancel();
          this.#watchOver(listening);
        },
        () => this.#listening === listening && this.#lost(),
      );
    });
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
    this.#waiters.delete(wake.id);
    for (const { self, onChange } of waiter.watches) onChange({ self, ahead: wake.ahead });
  }

  #wakeAll(): void {
    const waiters = [...this.#waiters];
    for (const [id, { watches }] of waiters) {
      if (watches.length === 0) continue;
      this.#waiters.delete(id);
      for (const { onChange } of watches) onChange();
    }
  }

  /** An append is under way: it may be told before it is answered. */
  asks(): void {
    this.#asking += 1;
  }

  /** An append was answered. */
  answered(): void {
    this.#asking -= 1;
    if (this.#asking === 0 && this.#early.size > 0) this.#early.clear();
  }

  /** An entry waits; its append was sent while `since` listened. Called before `answered`. */
  waits(id: string, seq: bigint, since: number): void {
    const early = this.#early.get(id);
    const missed = early?.seq === seq ? early : null;
    const watches = this.#waiters.get(id)?.watches ?? [];
    this.#waiters.set(id, { seq, since, missed, watches });
  }

  /** Whether an entry of this client is known to wait behind others. */
  isWaiting(id: string): boolean {
    return this.#waiters.has(id);
  }

  /** An entry has left its queue, or is about to. */
  forget(id: string): void {
    this.#waiters.delete(id);
  }

  /** Calls back when an entry may have been granted; at once if that may have been missed. */
  watch(self: Entry, onChange: (fresh?: Snapshot) => void): () => void {
    const watch: Watch = { self, onChange };
    const known = this.#waiters.get(self.id);
    if (known?.seq === self.seq && known.missed !== null) {
      this.forget(self.id);
      onChange({ self, ahead: known.missed.ahead });
      return () => {};
    }
    const sure = known?.seq === self.seq && known.since === this.#connection && known.since > 0;
    const waiter = sure ? known : { seq: self.seq, since: 0, missed: null, watches: known?.watches ?? [] };
    if (!sure) this.#waiters.set(self.id, waiter);
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
    this.#timer?.cancel();
    this.#listening?.close();
    this.#listening = null;
    this.#waiters.clear();
    this.#early.clear();
    this.#onSettled = null;
  }
}
