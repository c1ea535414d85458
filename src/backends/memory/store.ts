/** The queues of a process in memory: what a store server is to other backends. All that happens, happens at once. */
import type { Entry, NewEntry, Renewal, Renewed, Snapshot } from "../../core/backend.ts";
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import { ruleOf } from "../../core/grant.ts";
import { Line, type MemoryClient, MemoryEntry, type Watch } from "./line.ts";

/** How often entries are looked for that nobody renewed and nobody asked about. */
const sweepMs = 60_000;

/** The highest seq of any store of this process: a store that is made anew goes on from there. */
let highestSeq = 0n;

/** Queues that several clients of one process share. */
export class MemoryStore {
  private readonly clock: Clock;
  private readonly lines = new Map<string, Line>();
  /** The line that emptied last: kept among the lines, since a lock that is taken again and again is the usual case. */
  private idle: Line | null = null;
  /** Ids of entries that were evicted, and until when their owners may ask. */
  private readonly evicted = new Map<string, number>();
  /** Those who wait for any entry of a line to leave. */
  private readonly roomWatches = new Map<MemoryEntry, Watch>();
  private lastSeq: bigint;
  private sweeper: Timer | null = null;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
    // Above all tokens of an earlier process, as long as the wall clock did not go back by more than it has lived.
    const startSeq = BigInt(Math.floor(clock.wallMs())) * 1000n;
    this.lastSeq = startSeq > highestSeq ? startSeq : highestSeq;
  }

  append(queue: string, asked: NewEntry, client: MemoryClient): Snapshot | null {
    const known = this.pruneFront(queue)?.find(asked.id);
    if (known !== undefined && known.expiresAt > this.clock.now()) return this.look(known);
    if (known !== undefined) this.take(known);
    // Taking entries out wakes watchers, and they may append at once: the line and the seq are read after that, and the
    // seq is used up before look wakes more of them.
    const line = this.lines.get(queue) ?? new Line(queue);
    const entry = new MemoryEntry(line, client, asked, this.nextSeq(), this.clock);
    line.append(entry);
    if (this.evicted.size > 0) this.evicted.delete(entry.id);
    if (line.first === entry && line !== this.idle) this.lines.set(queue, line);
    if (line === this.idle) this.idle = null;
    const snapshot = this.look(entry);
    if (asked.onlyIfGranted === true && !ruleOf(entry).grants(entry, snapshot.ahead)) {
      this.take(entry);
      return null;
    }
    this.sweeper ??= this.clock.after(sweepMs, () => this.sweep());
    return snapshot;
  }

  private nextSeq(): bigint {
    this.lastSeq += 1n;
    if (this.lastSeq > highestSeq) highestSeq = this.lastSeq;
    return this.lastSeq;
  }

  renew({ queue, id, seq, ttlMs }: Renewal): Renewed {
    const entry = this.lines.get(queue)?.find(id);
    const now = this.clock.now();
    if (entry === undefined) return { outcome: "gone", evicted: this.evicted.has(id) };
    if (entry.expiresAt <= now) {
      this.take(entry);
      return { outcome: "gone" };
    }
    if (entry.seq !== seq) return { outcome: "gone" };
    entry.expiresAt = Math.max(entry.expiresAt, now + ttlMs);
    return { outcome: "renewed", expiresInMs: entry.expiresInMs };
  }

  remove(queue: string, id: string, evict: boolean, seq?: bigint): boolean {
    const entry = this.lines.get(queue)?.find(id);
    if (entry === undefined || (seq !== undefined && entry.seq !== seq)) return false;
    const wasLive = entry.expiresAt > this.clock.recent();
    if (evict && wasLive) this.evicted.set(id, entry.expiresAt);
    this.take(entry);
    if (evict && wasLive) entry.client.evicted(queue, id);
    return wasLive;
  }

  list(queue: string): readonly Entry[] {
    const line = this.lines.get(queue);
    if (line === undefined) return [];
    this.clock.now();
    this.prune(line);
    return [...line].map((entry) => entry.view());
  }

  /** Calls back when the target leaves, or when room was made; at once if that has happened already. */
  watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    client: MemoryClient,
    onChange: (fresh?: Snapshot) => void,
  ): () => void {
    const waiter = this.live(queue, self);
    const watch: Watch = { waiter, client, onChange };
    if (waiter === undefined) return this.tellNow(watch);
    if (target === null) return this.watchRoom(waiter, watch);
    const blocker = this.live(queue, target);
    if (blocker === undefined) return this.tellNow(watch);
    if (blocker.watches === null) blocker.watches = watch;
    else if (blocker.watches instanceof Set) blocker.watches.add(watch);
    else blocker.watches = new Set([blocker.watches, watch]);
    return () => {
      if (blocker.watches === watch) blocker.watches = null;
      else if (blocker.watches instanceof Set) blocker.watches.delete(watch);
    };
  }

  /** The entry of this store that an Entry stands for. */
  private live(queue: string, entry: Entry): MemoryEntry | undefined {
    return entry instanceof MemoryEntry && entry.live ? entry : this.lines.get(queue)?.find(entry.id);
  }

  private watchRoom(waiter: MemoryEntry, watch: Watch): () => void {
    if (this.wouldGrant(waiter)) return this.tellNow(watch);
    this.roomWatches.set(waiter, watch);
    return () => this.roomWatches.delete(waiter);
  }

  private tellNow(watch: Watch): () => void {
    this.tell(watch);
    return () => {};
  }

  private tell({ waiter, client, onChange }: Watch): void {
    if (!client.closed) onChange(this.fresh(waiter));
  }

  queues(prefix: string): readonly string[] {
    for (const line of this.lines.values()) this.prune(line);
    return [...this.lines.values()]
      .filter((line) => line.first !== null && line.queue.startsWith(prefix))
      .map((line) => line.queue);
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

  /** What a wake-up carries: nothing for a waiter that died in line, which must not hear that it is first. */
  private fresh(entry: MemoryEntry | undefined): Snapshot | undefined {
    const alive = entry !== undefined && entry.live && entry.expiresAt > this.clock.recent();
    return alive ? this.snapshot(entry) : undefined;
  }

  private wouldGrant(entry: MemoryEntry): boolean {
    return ruleOf(entry).grants(entry, entry.line.aheadOf(entry));
  }

  private pruneFront(queue: string): Line | undefined {
    const line = this.lines.get(queue);
    if (line === undefined) return undefined;
    const now = this.clock.recent();
    while (line.first !== null && line.first.expiresAt <= now) this.take(line.first);
    return line;
  }

  private prune(line: Line): void {
    const now = this.clock.recent();
    for (const entry of line) if (entry.expiresAt <= now) this.take(entry);
  }

  private take(entry: MemoryEntry): void {
    const { line, watches } = entry;
    if (!entry.live) return;
    line.remove(entry);
    if (line.first === null) this.rememberIdle(line);
    entry.watches = null;
    if (watches instanceof Set) for (const watch of watches) this.tell(watch);
    else if (watches !== null) this.tell(watches);
    if (this.roomWatches.size > 0) {
      this.roomWatches.delete(entry);
      this.tellOfRoom(line);
    }
  }

  private rememberIdle(line: Line): void {
    if (this.idle !== null && this.idle !== line) this.lines.delete(this.idle.queue);
    this.idle = line;
  }

  /** Wakes those who have room now: they stand within the first `mostPermits` permits of the line. */
  private tellOfRoom(line: Line): void {
    let weight = 0;
    for (const entry of line) {
      const watch = this.roomWatches.get(entry);
      if (watch !== undefined && this.wouldGrant(entry)) {
        this.roomWatches.delete(entry);
        this.tell(watch);
      }
      weight += entry.weight;
      if (weight >= line.mostPermits) return;
    }
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const line of this.lines.values()) this.prune(line);
    for (const [id, until] of this.evicted) if (until <= now) this.evicted.delete(id);
    const busy = [...this.lines.values()].some((line) => line.first !== null) || this.evicted.size > 0;
    this.sweeper = busy ? this.clock.after(sweepMs, () => this.sweep()) : null;
  }
}
