/**
 * One queue in memory: a linked list in arrival order that knows, for any entry, what is ahead. Appending, removing and
 * a hand-over cost O(1); asking about an entry in the middle costs O(log n). Knows nothing of time beyond expiresAt.
 */
import type { Ahead, Entry, EntryMode, NewEntry, Owner, Snapshot } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { nothingAhead } from "../../core/grant.ts";
import { Ranks } from "./ranks.ts";
import { Roll } from "./roll.ts";

/** What a line knows of a client of its store. */
export interface MemoryClient {
  /** After this nobody calls it back. */
  readonly closed: boolean;
  /** An entry of its own was evicted. */
  evicted(queue: string, id: string): void;
}

/** One who wants to hear that an entry has left, or that there is room. */
export interface Watch {
  /** The entry that waits. */
  readonly waiter: MemoryEntry | undefined;
  readonly client: MemoryClient;
  readonly onChange: (fresh?: Snapshot) => void;
}

/** An entry in its line; as an Entry it is a live view of what the store knows. */
export class MemoryEntry implements Entry {
  readonly id: string;
  readonly owner: Owner;
  readonly mode: EntryMode;
  readonly weight: number;
  readonly permits: number | undefined;
  readonly metadata: string | undefined;
  readonly seq: bigint;
  readonly line: Line;
  /** The client whose entry it is, told when it is evicted. */
  readonly client: MemoryClient;
  private readonly clock: Clock;
  private readonly appendedAt: number;
  expiresAt: number;

  prev: MemoryEntry | null = null;
  next: MemoryEntry | null = null;
  /** The nearest writer ahead; may have left the line, and then its own writerAhead leads on. */
  writerAhead: MemoryEntry | null = null;
  /** Where the ranks and the roll of its line have it. */
  place = -1;
  enrolled = 0;
  /** The mark of its id, unless nobody was ahead when it came. */
  mark = 0;
  live = true;
  /** Who wants to hear when this entry leaves: mostly nobody or one. */
  watches: Watch | Set<Watch> | null = null;

  constructor(line: Line, client: MemoryClient, asked: NewEntry, seq: bigint, clock: Clock) {
    this.id = asked.id;
    this.owner = asked.owner;
    this.mode = asked.mode;
    this.weight = asked.weight;
    this.permits = asked.permits;
    this.metadata = asked.metadata;
    this.seq = seq;
    this.line = line;
    this.client = client;
    this.clock = clock;
    this.appendedAt = clock.recent();
    this.expiresAt = this.appendedAt + asked.ttlMs;
  }

  get expiresInMs(): number {
    // Down to whole microseconds: a sum and its difference may be a little more than what went in.
    return Math.max(0, Math.floor((this.expiresAt - this.clock.recent()) * 1000) / 1000);
  }

  get ageMs(): number {
    return this.clock.recent() - this.appendedAt;
  }

  /** The entry as it is now, for those who keep it. */
  view(): Entry {
    const { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata } = this;
    return { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata };
  }
}

/** Up to this many entries are looked through one by one: a map of short-lived keys costs far more. */
const longestScan = 32;

/** One bit of 32; ids that follow each other, as those of one client do, have different ones. */
function markOf(id: string): number {
  const { length } = id;
  return length < 2 ? 1 : 1 << ((id.charCodeAt(length - 1) + 10 * id.charCodeAt(length - 2)) % 32);
}

/** The entries of one queue, first to last. */
export class Line {
  readonly queue: string;
  first: MemoryEntry | null = null;
  /** The largest number of permits that an entry of this line was asked with. */
  mostPermits = 0;
  private last: MemoryEntry | null = null;
  private lastWriter: MemoryEntry | null = null;
  private count = 0;
  private weight = 0;
  /** The marks of all ids but the first one, and of some that have left: most new ids are seen to be new by theirs. */
  private marks = 0;
  /** All entries by id: made when the line gets long, kept until it is empty. */
  private roll: Roll | null = null;
  /** Made when somebody asks about the middle, kept until the line is empty. */
  private ranks: Ranks | null = null;

  constructor(queue: string) {
    this.queue = queue;
  }

  find(id: string): MemoryEntry | undefined {
    const { first } = this;
    if (first === null || (first.mark === 0 && first.id === id)) return first ?? undefined;
    const mark = markOf(id);
    if (first.mark === mark && first.id === id) return first;
    if (this.roll !== null) return this.roll.find(id);
    return (this.marks & mark) === 0 ? undefined : this.scan(first.next, id, mark);
  }

  /** Looks through the line; what it does not find it need not look for again, so the marks are gathered anew. */
  private scan(from: MemoryEntry | null, id: string, mark: number): MemoryEntry | undefined {
    let marks = 0;
    for (let entry = from; entry !== null; entry = entry.next) {
      if (entry.mark === mark && entry.id === id) return entry;
      marks |= entry.mark;
    }
    this.marks = marks;
    return undefined;
  }

  append(entry: MemoryEntry): void {
    entry.prev = this.last;
    entry.writerAhead = this.lastWriter;
    if (this.last === null) {
      this.first = entry;
    } else {
      this.last.next = entry;
      entry.mark = markOf(entry.id);
      this.marks |= entry.mark;
    }
    this.last = entry;
    if (entry.mode === "write") this.lastWriter = entry;
    this.count += 1;
    this.weight += entry.weight;
    if (entry.permits !== undefined && entry.permits > this.mostPermits) this.mostPermits = entry.permits;
    if (this.roll?.full === false) this.roll.add(entry);
    else if (this.count > longestScan || this.roll !== null) this.enroll();
    if (this.ranks?.full) this.rank();
    else if (this.ranks !== null) entry.place = this.ranks.append(entry.weight);
  }

  remove(entry: MemoryEntry): void {
    const { prev, next } = entry;
    entry.live = false;
    this.roll?.strike(entry);
    // Cuts the chain of writers that have left, so that none of them is kept.
    entry.writerAhead = prev === null ? null : this.writerAheadOf(entry);
    if (this.lastWriter === entry) this.lastWriter = entry.writerAhead;
    if (prev === null) this.first = next;
    else prev.next = next;
    if (next === null) this.last = prev;
    else next.prev = prev;
    entry.prev = null;
    entry.next = null;
    this.count -= 1;
    this.weight -= entry.weight;
    if (this.count === 0) {
      this.ranks = null;
      this.roll = null;
    }
    this.ranks?.remove(entry.place, entry.weight);
  }

  /** What is ahead of an entry of this line. */
  aheadOf(entry: MemoryEntry): Ahead {
    if (entry.prev === null) return nothingAhead;
    const { count, weight } = entry === this.last ? this.beforeLast(entry) : this.beforeMiddle(entry);
    return { count, weight, nearest: entry.prev, nearestWriter: this.writerAheadOf(entry) };
  }

  /** The nearest writer ahead that is still in line; remembers what it found. */
  writerAheadOf(entry: MemoryEntry): MemoryEntry | null {
    let writer = entry.writerAhead;
    while (writer !== null && !writer.live) writer = writer.writerAhead;
    entry.writerAhead = writer;
    return writer;
  }

  private beforeLast(last: MemoryEntry): { count: number; weight: number } {
    return { count: this.count - 1, weight: this.weight - last.weight };
  }

  private beforeMiddle(entry: MemoryEntry): { count: number; weight: number } {
    return (this.ranks ?? this.rank()).before(entry.place);
  }

  private enroll(): void {
    this.roll = new Roll(2 * this.count);
    for (const entry of this) this.roll.add(entry);
  }

  private rank(): Ranks {
    const ranks = new Ranks(2 * this.count + 64);
    for (const entry of this) entry.place = ranks.append(entry.weight);
    this.ranks = ranks;
    return ranks;
  }

  *[Symbol.iterator](): Generator<MemoryEntry, void> {
    for (let entry = this.first; entry !== null;) {
      const { next } = entry;
      yield entry;
      entry = next;
    }
  }
}
