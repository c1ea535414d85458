/** The queues of a process in memory: what a store server is to other backends. All that happens, happens at once. */
import type { Entry, NewEntry, Renewal, Renewed, Snapshot } from "../../core/backend.ts";
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import { ruleOf } from "../../core/grant.ts";
import { Line, MemoryEntry } from "./line.ts";

/** How often entries are looked for that nobody renewed and nobody asked about. */
const sweepMs = 60_000;

/** The highest seq of any store of this process: a store that is made anew goes on from there. */
let highestSeq = 0n;

/** Told when an entry of its own was evicted. */
export interface MemoryClient {
  evicted(queue: string, id: string): void;
}

/** Queues that several clients of one process share. */
export class MemoryStore {
  private readonly clock: Clock;
  private readonly lines = new Map<string, Line>();
  private readonly entries = new Map<string, MemoryEntry>();
  /** Ids of entries that were evicted, and until when their owners may ask. */
  private readonly evicted = new Map<string, number>();
  /** Those who wait for any entry of a line to leave. */
  private readonly roomWatchers = new Map<MemoryEntry, () => void>();
  private lastSeq: bigint;
  private sweeper: Timer | null = null;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
    // Above all tokens of an earlier process, as long as the wall clock did not go back by more than it has lived.
    const startSeq = BigInt(Math.floor(clock.wallMs())) * 1000n;
    this.lastSeq = startSeq > highestSeq ? startSeq : highestSeq;
  }

  append(queue: string, asked: NewEntry, client: MemoryClient): Snapshot | null {
    const line = this.lines.get(queue) ?? new Line(queue);
    this.pruneFront(line);
    const known = this.entries.get(asked.id);
    if (known !== undefined && known.expiresAt > this.clock.recent()) return this.look(known);
    if (known !== undefined) this.take(known);
    const entry = new MemoryEntry(line, client, asked, this.lastSeq + 1n, this.clock);
    line.append(entry);
    const snapshot = this.look(entry);
    if (asked.onlyIfGranted === true && !ruleOf(entry).grants(entry, snapshot.ahead)) {
      line.remove(entry);
      return null;
    }
    this.lastSeq = entry.seq;
    if (entry.seq > highestSeq) highestSeq = entry.seq;
    this.entries.set(entry.id, entry);
    if (line.first === entry) this.lines.set(queue, line);
    this.sweeper ??= this.clock.after(sweepMs, () => this.sweep());
    return snapshot;
  }

  renew({ id, seq, ttlMs }: Renewal): Renewed {
    const entry = this.entries.get(id);
    const now = this.clock.recent();
    if (entry === undefined) return { outcome: "gone", evicted: this.evicted.has(id) };
    if (entry.expiresAt <= now) {
      this.take(entry);
      return { outcome: "gone" };
    }
    if (seq !== undefined && seq !== entry.seq) return { outcome: "gone" };
    entry.expiresAt = Math.max(entry.expiresAt, now + ttlMs);
    return { outcome: "renewed", expiresInMs: entry.expiresInMs };
  }

  remove(queue: string, id: string, evict: boolean, seq?: bigint): boolean {
    const entry = this.entries.get(id);
    if (entry === undefined || entry.line.queue !== queue) return false;
    if (seq !== undefined && entry.seq !== seq) return false;
    const wasLive = entry.expiresAt > this.clock.recent();
    if (evict && wasLive) this.evicted.set(id, entry.expiresAt);
    this.take(entry);
    if (evict && wasLive) (entry.client as MemoryClient).evicted(queue, id);
    return wasLive;
  }

  list(queue: string): readonly Entry[] {
    const line = this.lines.get(queue);
    if (line === undefined) return [];
    this.prune(line);
    return [...line].map((entry) => entry.view());
  }

  /** Calls back when the target leaves, or when room was made; at once if that has happened already. */
  watch(id: string, targetId: string | null, onChange: (fresh?: Snapshot) => void): () => void {
    const self = this.entries.get(id);
    const tell = (): void => onChange(self?.live ? this.snapshot(self) : undefined);
    const target = targetId === null ? undefined : this.entries.get(targetId);
    if (self === undefined || (targetId !== null && target === undefined)) {
      tell();
      return () => {};
    }
    if (target === undefined) return this.watchRoom(self, tell);
    if (target.watchers === null) target.watchers = [tell];
    else target.watchers.push(tell);
    return () => {
      const at = target.watchers?.indexOf(tell) ?? -1;
      if (at >= 0) target.watchers?.splice(at, 1);
    };
  }

  private watchRoom(self: MemoryEntry, tell: () => void): () => void {
    if (this.wouldGrant(self)) tell();
    else this.roomWatchers.set(self, tell);
    return () => this.roomWatchers.delete(self);
  }

  queues(prefix: string): readonly string[] {
    for (const line of [...this.lines.values()]) this.prune(line);
    return [...this.lines.keys()].filter((queue) => queue.startsWith(prefix));
  }

  /** Cancels the timer; entries are left to their ttl. */
  rest(): void {
    this.sweeper?.cancel();
    this.sweeper = null;
  }

  /** What is ahead of an entry, after taking out what has expired and would block it. */
  private look(entry: MemoryEntry): Snapshot {
    const now = this.clock.recent();
    while (entry.prev !== null && entry.prev.expiresAt <= now) this.take(entry.prev);
    if (entry.permits !== undefined) this.prune(entry.line);
    let snapshot = this.snapshot(entry);
    for (;;) {
      const writer = entry.line.writerAheadOf(entry);
      if (writer === null || writer.expiresAt > now) return snapshot;
      this.take(writer);
      snapshot = this.snapshot(entry);
    }
  }

  private snapshot(entry: MemoryEntry): Snapshot {
    return { self: entry, ahead: entry.line.aheadOf(entry) };
  }

  private wouldGrant(entry: MemoryEntry): boolean {
    return ruleOf(entry).grants(entry, entry.line.aheadOf(entry));
  }

  private pruneFront(line: Line): void {
    if (line.first === null) return;
    const now = this.clock.recent();
    while (line.first !== null && line.first.expiresAt <= now) this.take(line.first);
  }

  private prune(line: Line): void {
    const now = this.clock.recent();
    for (const entry of line) if (entry.expiresAt <= now) this.take(entry);
  }

  private take(entry: MemoryEntry): void {
    const { line, watchers } = entry;
    if (!entry.live) return;
    line.remove(entry);
    this.entries.delete(entry.id);
    if (line.first === null) this.lines.delete(line.queue);
    entry.watchers = null;
    if (watchers !== null) for (const tell of watchers) tell();
    if (this.roomWatchers.size > 0) {
      this.roomWatchers.delete(entry);
      this.tellOfRoom(line);
    }
  }

  /** Wakes those who have room now: they stand within the first `mostPermits` permits of the line. */
  private tellOfRoom(line: Line): void {
    let weight = 0;
    for (const entry of line) {
      const tell = this.roomWatchers.get(entry);
      if (tell !== undefined && this.wouldGrant(entry)) {
        this.roomWatchers.delete(entry);
        tell();
      }
      weight += entry.weight;
      if (weight >= line.mostPermits) return;
    }
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const line of [...this.lines.values()]) this.prune(line);
    for (const [id, until] of this.evicted) if (until <= now) this.evicted.delete(id);
    const busy = this.lines.size > 0 || this.evicted.size > 0;
    this.sweeper = busy ? this.clock.after(sweepMs, () => this.sweep()) : null;
  }
}
