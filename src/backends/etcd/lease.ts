/**
 * The leases of one client: one for each ttl, shared by all its entries of that ttl, granted when it is first needed.
 *
 * A lease lives or dies as a whole, an entry must not: one that nobody renews any more has to go although its neighbours
 * are kept alive. Nobody but this client keeps the lease alive, so while the client lives it takes out itself, at its
 * deadline, what was not renewed; when the client dies the lease ends, and with it all that is left. Either way an entry
 * ends at most one ttl after its last renewal or its owner's death, and renewing costs no write.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import { type Calls, closedError } from "./calls.ts";
import * as methods from "./client/methods.ts";

/** An entry that this client has put into the store, or may have. */
export interface OwnEntry {
  readonly queue: string;
  readonly id: string;
  readonly key: string;
  /** Null where it is not known whether it is there. */
  readonly seq: bigint | null;
  lease: Lease;
  /** Until when it surely lives, by our clock, unless somebody takes it out. */
  until: number;
  /** When it is looked after if it was not renewed by then. */
  sweepAt: number;
  /** How often it is taken out before it is forgotten. */
  sweeps: number;
  /** It is being taken out because nobody has renewed it: nothing prolongs it any more, also no answer that is on its way. */
  expired: boolean;
  /** What the store has told of its end: that it is gone, or that somebody took it out by force. */
  ended: "gone" | "evicted" | null;
}

/** A lease, as far as this client knows. */
export class Lease {
  readonly id: bigint;
  /** What was granted: at least what was asked for, in whole seconds, and at least the server's minimum. */
  readonly lifeMs: number;
  /** Until when it surely lives, by our clock: counted from before the call that granted or prolonged it. */
  until: number;
  /** The election term in which that was said. */
  term = 0n;
  /** Entries on it, in the order of their deadlines. */
  readonly entries: Set<OwnEntry> = new Set();
  /** How many appends are under way that may put an entry on it. */
  joining = 0;
  /** No new entries: what was sent on it may arrive late, and has to end with it. */
  retired = false;
  gone = false;
  keeping: Promise<boolean> | null = null;
  timer: Timer | null = null;

  constructor(id: bigint, lifeMs: number, until: number) {
    this.id = id;
    this.lifeMs = lifeMs;
    this.until = until;
  }

  /** How long ago it was granted or prolonged. */
  ageMs(now: number): number {
    return this.lifeMs - (this.until - now);
  }
}

/** From this share of its life on, a lease is prolonged when an entry joins it, so that the entry starts with almost a full ttl. */
const freshShare = 0.1;
/** With less than this share left it is prolonged before, since it may end on the way. */
const safeShare = 0.25;
/** How long giving back a lease may take, in milliseconds. */
const revokeMs = 1_000;
/** How long after its deadline an entry that was not renewed is taken out, in milliseconds. */
const graceMs = 5;

/** The leases of one client. */
export class Leases {
  readonly #calls: Calls;
  readonly #clock: Clock;
  readonly #expire: (entries: readonly OwnEntry[]) => void;
  /** By their life in seconds: those that new entries join. */
  readonly #bySeconds = new Map<number, Promise<Lease>>();
  readonly #all = new Map<bigint, Lease>();
  #closed = false;

  /** `expire` is told which entries have outlived their deadline. */
  constructor(calls: Calls, clock: Clock, expire: (entries: readonly OwnEntry[]) => void) {
    this.#calls = calls;
    this.#clock = clock;
    this.#expire = expire;
  }

  /** A lease for an entry of this ttl that surely lives for a while. */
  async forTtl(ttlMs: number): Promise<Lease> {
    const seconds = Math.ceil(ttlMs / 1_000);
    for (;;) {
      // What is left is given back then, and nothing more is granted.
      if (this.#closed) throw closedError();
      const asked = this.#bySeconds.get(seconds) ?? this.#grant(seconds);
      const lease = await asked;
      if (this.#bySeconds.get(seconds) !== asked) continue;
      if (lease.until - this.#clock.now() > safeShare * lease.lifeMs || (await this.keep(lease)))
        return lease;
    }
  }

  #grant(seconds: number): Promise<Lease> {
    const granting = this.#ask(seconds);
    this.#bySeconds.set(seconds, granting);
    granting.catch(() => this.#forget(seconds, granting));
    return granting;
  }

  async #ask(seconds: number): Promise<Lease> {
    const sentAt = this.#clock.now();
    // One that was granted unheard ends by itself.
    const request = { ttl: BigInt(seconds) };
    const { id, ttl, header } = await this.#calls.read("granting a lease", methods.leaseGrant, request);
    const lifeMs = Number(ttl) * 1_000;
    const lease = new Lease(id, lifeMs, sentAt + lifeMs);
    lease.term = header?.raftTerm ?? 0n;
    this.#all.set(id, lease);
    return lease;
  }

  #forget(seconds: number, granting: Promise<Lease>): void {
    if (this.#bySeconds.get(seconds) === granting) this.#bySeconds.delete(seconds);
  }

  /** Prolongs a lease that is not fresh any more; resolves when it is, or when that has failed. */
  freshen(lease: Lease): Promise<unknown> | null {
    if (lease.ageMs(this.#clock.recent()) < freshShare * lease.lifeMs) return null;
    return this.keep(lease).catch(() => false);
  }

  /** Prolongs a lease: false if it does not exist any more. Rejects if nobody says. */
  keep(lease: Lease): Promise<boolean> {
    lease.keeping ??= this.#keep(lease).finally(() => {
      lease.keeping = null;
    });
    return lease.keeping;
  }

  async #keep(lease: Lease): Promise<boolean> {
    if (lease.gone) return false;
    const sentAt = this.#clock.now();
    const { id, lifeMs } = lease;
    // A server that hangs must leave time to ask another one.
    const deadlineMs = Math.min(this.#calls.client.callMs, lifeMs / 4);
    const answer = await this.#calls.read("a keep-alive", methods.leaseKeepAlive, { id }, deadlineMs);
    const { ttl, header } = answer;
    if (ttl <= 0n) {
      this.lost(lease);
      return false;
    }
    lease.until = Math.max(lease.until, sentAt + Math.min(lifeMs, Number(ttl) * 1_000));
    lease.term = header?.raftTerm ?? 0n;
    return true;
  }

  /**
   * Whether what was said about a lease still holds in this election term. A leader that was deposed while it stood still
   * may have prolonged it, when it wakes up and does not know yet; the one that counts has not heard of that.
   */
  trusts(lease: Lease, term: bigint): boolean {
    if (term <= lease.term) return true;
    lease.until = Math.min(lease.until, this.#clock.now());
    return false;
  }

  /** The server does not have it any more. */
  lost(lease: Lease): void {
    lease.gone = true;
    this.retire(lease);
    this.release(lease);
  }

  /** New entries get another one; when the last entry has left, it is given back. */
  retire(lease: Lease): void {
    lease.retired = true;
    for (const [seconds, asked] of this.#bySeconds) {
      asked.then(
        (found) => {
          if (found === lease) this.#forget(seconds, asked);
        },
        // Whoever asked for it hears of that.
        () => {},
      );
    }
  }

  /** The lease of this client with this id. */
  find(id: bigint): Lease | undefined {
    return this.#all.get(id);
  }

  /** A lease that this client has not granted itself, and from now on keeps alive. */
  adopt(id: bigint, ttlMs: number): Lease {
    const lease = this.find(id) ?? new Lease(id, Math.ceil(ttlMs / 1_000) * 1_000, this.#clock.now());
    lease.retired ||= this.find(id) === undefined;
    this.#all.set(id, lease);
    return lease;
  }

  /** Keeps an entry until its deadline, which is that of its lease now. */
  hold(entry: OwnEntry): void {
    const { lease } = entry;
    entry.until = lease.until;
    entry.sweepAt = lease.until + graceMs;
    lease.entries.delete(entry);
    lease.entries.add(entry);
    if (lease.timer === null) this.#arm(lease);
  }

  /** The entry has left, or is gone. */
  drop(entry: OwnEntry): void {
    entry.lease.entries.delete(entry);
    this.release(entry.lease);
  }

  /** Gives a lease back that is not used for new entries any more, if nothing is on it or on its way to it. */
  release(lease: Lease): void {
    if (!lease.retired || lease.entries.size > 0 || lease.joining > 0) return;
    this.#all.delete(lease.id);
    if (!lease.gone && !this.#closed) void this.#revoke(lease).catch(() => {});
  }

  #arm(lease: Lease): void {
    const [first] = lease.entries;
    if (first === undefined || this.#closed) return;
    lease.timer = this.#clock.after(first.sweepAt - this.#clock.now(), () => {
      lease.timer = null;
      const now = this.#clock.now();
      const due: OwnEntry[] = [];
      for (const entry of lease.entries) {
        if (entry.sweepAt > now) break;
        due.push(entry);
      }
      // Behind the others, so that what cannot be taken out now is tried again when the next deadline comes.
      for (const entry of due) {
        lease.entries.delete(entry);
        entry.sweepAt = now + lease.lifeMs / 4;
        lease.entries.add(entry);
      }
      if (due.length > 0) this.#expire(due);
      this.#arm(lease);
    });
  }

  /** Asks once: a lease that is not given back ends with its ttl. */
  async #revoke(lease: Lease): Promise<void> {
    lease.gone = true;
    await this.#calls.client.call(methods.leaseRevoke, { id: lease.id }, { deadlineMs: revokeMs });
  }

  /** Ends the timers, and gives back the leases without entries; the others end with their ttl. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const lease of this.#all.values()) lease.timer?.cancel();
    const idle = [...this.#all.values()].filter(({ entries, gone }) => entries.size === 0 && !gone);
    await Promise.allSettled(idle.map((lease) => this.#revoke(lease)));
  }
}
