/**
 * What each call does to the queues; but for the calls on one entry alone, inside a transaction that somebody else begins
 * and ends. Whom it concerns is written down, to be told after the commit.
 */
import type { NewEntry, Renewal, Renewed, Snapshot } from "../../core/backend.ts";
import { nothingAhead } from "../../core/grant.ts";
import type { Machine } from "./machine.ts";
import { firstOf, type Message } from "./messages.ts";
import {
  entryOf,
  insert,
  insertAlone,
  type Standing,
  standingFor,
  standingOf,
  type Statements,
} from "./statements.ts";
import { concernedBy, type Left, snapshotOf } from "./succession.ts";

/** A message and the process that it is for. */
export interface Letter {
  readonly process: string;
  readonly message: Message;
}

/** The process and the client that an entry belongs to. */
export type Address = Pick<Standing, "process" | "slot">;

/** An entry and what is ahead of it, and whether all of that is live as far as it matters. */
export interface Look {
  readonly snapshot: Snapshot;
  readonly isClean: boolean;
}

/** Thrown inside a transaction: no seq as high may be given out before the disk has a higher ceiling. */
export class CeilingReached extends Error {
  readonly seq: bigint;

  constructor(seq: bigint) {
    super("the ceiling of the seqs is reached");
    this.seq = seq;
  }
}

/** Thrown by a look: the entry was taken out since it was found. */
export class Displaced extends Error {
  constructor() {
    super("the entry was taken out as soon as it was appended");
  }
}

/** How many crowded queues are remembered at most. */
const mostCrowded = 1_000;

/** How old the moment of this boot in the file may be, in microseconds: it tells the next boot where that has no name. */
const clockUs = 60_000_000;

const endOfQueue = 2n ** 63n - 1n;

/** The queues of a file, as one connection writes them. */
export class Ledger {
  readonly #statements: Statements;
  readonly #machine: Machine;
  readonly #isGone: (process: string) => boolean;
  readonly #onGone: (process: string) => void;
  #letters: Letter[] = [];
  /** The last seq that this connection has given out. */
  #lastSeq = 0n;
  /** Queues that had several entries when this connection last looked: for these the short way would be a detour. */
  readonly #crowded = new Set<string>();

  constructor(
    statements: Statements,
    machine: Machine,
    isGone: (process: string) => boolean,
    onGone: (process: string) => void,
  ) {
    this.#statements = statements;
    this.#machine = machine;
    this.#isGone = isGone;
    this.#onGone = onGone;
  }

  /** The letters that were written since the last time. */
  takeLetters(): readonly Letter[] {
    if (this.#letters.length === 0) return this.#letters;
    const letters = this.#letters;
    this.#letters = [];
    return letters;
  }

  /**
   * Appends to a queue that is empty, by one statement, which is a transaction of its own: what most calls need. Null if
   * the queue is not empty, or if somebody else has given out a higher seq meanwhile.
   */
  appendAlone(queue: string, asked: NewEntry, owner: Address): Snapshot | null {
    if (this.#crowded.has(queue)) return null;
    const nowUs = this.#machine.nowUs();
    const wallUs = this.#wallUs();
    const seq = wallUs > this.#lastSeq ? wallUs : this.#lastSeq + 1n;
    const self = standingFor(asked, seq, nowUs, owner);
    if (insertAlone(this.#statements, queue, self) === 0) return null;
    this.#lastSeq = seq;
    return shown(self, nowUs);
  }

  /**
   * Takes out a live entry, by one statement, too: the last of its queue, or a writer that one of the usual kind stands
   * behind, who is told. "Followed" if others have to be told by `tellBehind`; null if nothing was done.
   */
  removeAlone(queue: string, seq: bigint): "removed" | "followed" | null {
    const nowUs = this.#machine.nowUs();
    const { deleteLast, deleteWriter } = this.#statements;
    if (!this.#crowded.has(queue)) return deleteLast.run(queue, seq, nowUs) > 0 ? "removed" : null;
    const [row] = deleteWriter.all(queue, seq, nowUs);
    if (row === undefined) return null;
    if (row.next === null) {
      this.#crowded.delete(queue);
      return "removed";
    }
    if (row.next === "") return "followed";
    const at = row.next.indexOf(" ");
    const message: Message = { kind: "first", text: row.next.slice(at + 1) };
    this.#letters.push({ process: row.next.slice(0, at), message });
    return "removed";
  }

  /** Tells whom the leaving of a writer concerns, in a transaction after its own. Others may have come and gone since. */
  tellBehind(queue: string, leftSeq: bigint): void {
    const left = { seq: leftSeq, mode: "write", weight: 1, permits: undefined } as const;
    this.#tellOf(queue, left, this.#machine.nowUs());
  }

  /** Finds an entry, or appends it; null if it was to be granted at once and would not be. */
  append(queue: string, asked: NewEntry, owner: Address): Standing | null {
    const nowUs = this.#machine.nowUs();
    let first = this.#statements.front.get(queue, 1);
    const row = first?.id === asked.id ? first : first && this.#statements.byId.get(queue, asked.id);
    const known = row && standingOf(row);
    if (known !== undefined && known.untilUs > nowUs) return known;
    if (known !== undefined) this.expire(queue, nowUs);
    if (asked.onlyIfGranted === true && this.#isBlocked(queue, asked, nowUs)) return null;
    if (known !== undefined || asked.onlyIfGranted === true) first = this.#statements.front.get(queue, 1);
    const next = this.#statements.nextSeq.get(this.#wallUs());
    if (next === undefined) throw new Error("the store has no row");
    if (next.seq > next.ceiling) throw new CeilingReached(next.seq);
    const self = standingFor(asked, next.seq, nowUs, owner);
    insert(this.#statements, queue, self, first !== undefined);
    this.#lastSeq = next.seq;
    if (first !== undefined) this.#crowd(queue);
    return self;
  }

  /** What is ahead of an entry: a read, which costs more the more there are, and which nobody has to wait for. */
  look(queue: string, self: Standing): Look {
    const { bySeq, ahead, nearest: nearestOf, nearestWriter: writerOf } = this.#statements;
    const nowUs = this.#machine.nowUs();
    // Whoever is not in the queue any more must not hear that nobody is ahead.
    if (bySeq.get(queue, self.seq) === undefined) throw new Displaced();
    const sums = ahead.get(queue, self.seq);
    const row = nearestOf.get(queue, self.seq);
    if (sums === undefined || row === undefined) return { snapshot: shown(self, nowUs), isClean: true };
    const nearest = standingOf(row);
    const writer = nearest.mode === "write" ? row : writerOf.get(queue, self.seq);
    const nearestWriter = writer === undefined ? null : standingOf(writer);
    const [count, weight] = [Number(sums.count), Number(sums.weight)];
    const hasExpired = sums.until !== null && sums.until <= nowUs;
    const blocker = self.mode === "read" ? nearestWriter : nearest;
    const blockers =
      self.permits === undefined ? [blocker?.process ?? ""] : this.#blockersOf(queue, self, self.seq);
    const isClean = !hasExpired && !blockers.some((process) => this.#isGone(process));
    return { snapshot: snapshotOf({ self, count, weight, nearest, nearestWriter }, nowUs), isClean };
  }

  /** Takes out what has expired in a queue, and what belongs to processes that block an entry and have ended. */
  clean(queue: string, self: Standing): void {
    const nowUs = this.#machine.nowUs();
    this.expire(queue, nowUs);
    this.clear(this.#blockersOf(queue, self, self.seq), nowUs);
  }

  renew({ queue, id, seq, ttlMs }: Renewal): Renewed {
    const nowUs = this.#machine.nowUs();
    const row = this.#statements.renew.get(nowUs + Math.floor(ttlMs * 1000), queue, seq, id, nowUs);
    if (row !== undefined) return { outcome: "renewed", expiresInMs: (Number(row.until) - nowUs) / 1000 };
    return { outcome: "gone", evicted: this.#statements.wasEvicted.get(seq, nowUs) !== undefined };
  }

  remove(queue: string, id: string, evict: boolean, seq?: bigint): boolean {
    const nowUs = this.#machine.nowUs();
    const [first, second] = this.#statements.front.all(queue, 2);
    const row = first?.id === id ? first : this.#statements.byId.get(queue, id);
    if (row === undefined || (seq !== undefined && row.seq !== seq)) return false;
    const entry = standingOf(row);
    const wasLive = entry.untilUs > nowUs;
    this.#statements.delete.run(queue, entry.seq);
    if (evict && wasLive) {
      this.#statements.forgetEvicted.run(nowUs);
      this.#statements.evict.run(entry.seq, entry.untilUs);
      this.#letters.push({
        process: entry.process,
        message: { kind: "evicted", queue, id, slot: entry.slot },
      });
    }
    if (row !== first) this.#tellOf(queue, entry, nowUs);
    else if (second === undefined) this.#crowded.delete(queue);
    else if (entry.permits !== undefined || !this.#tellFirst(standingOf(second), nowUs)) {
      this.#tellOf(queue, entry, nowUs);
    }
    return wasLive;
  }

  /** The usual hand-over is to a writer that is first now. False if it is another one: nobody was told then. */
  #tellFirst(first: Standing, nowUs: number): boolean {
    if (first.mode === "read" || first.permits !== undefined || first.untilUs <= nowUs) return false;
    this.#letters.push({ process: first.process, message: firstOf(first) });
    return true;
  }

  /** Takes out what has expired in a queue. */
  expire(queue: string, nowUs: number): void {
    const expired = this.#statements.deleteExpired.all(queue, nowUs).map(standingOf);
    for (const entry of expired) this.#tellOf(queue, entry, nowUs);
  }

  /** Takes out the entries of those of the processes that have ended. True if there was one. */
  clear(processes: Iterable<string>, nowUs: number): boolean {
    let cleared = false;
    for (const process of processes) {
      if (!this.#isGone(process)) continue;
      this.#onGone(process);
      const rows = this.#statements.ofProcess.all(process);
      for (const { queue, seq } of rows) this.#statements.delete.run(queue, seq);
      for (const row of rows) this.#tellOf(row.queue, standingOf(row), nowUs);
      cleared ||= rows.length > 0;
    }
    return cleared;
  }

  /** Takes out all that is dead, in all queues. */
  sweep(): void {
    const nowUs = this.#machine.nowUs();
    const { forgetEvicted, expiredQueues, processes, setClock } = this.#statements;
    for (const { queue } of expiredQueues.all(nowUs)) this.expire(queue, nowUs);
    this.clear(
      processes.all().map(({ process }) => process),
      nowUs,
    );
    forgetEvicted.run(nowUs);
    setClock.run(nowUs, nowUs - clockUs);
  }

  #crowd(queue: string): void {
    if (this.#crowded.size >= mostCrowded) this.#crowded.clear();
    this.#crowded.add(queue);
  }

  #wallUs(): bigint {
    return BigInt(Math.floor(this.#machine.wallMs() * 1000));
  }

  /** Whether a new entry would have to wait, after taking out what is dead. */
  #isBlocked(queue: string, asked: NewEntry, nowUs: number): boolean {
    const { ahead, front, nearest, nearestWriter } = this.#statements;
    this.expire(queue, nowUs);
    for (;;) {
      if (asked.permits !== undefined) {
        const weight = Number(ahead.get(queue, endOfQueue)?.weight ?? 0);
        if (weight + asked.weight <= asked.permits) return false;
      } else {
        const last = asked.mode === "read" ? nearestWriter : nearest;
        if (last.get(queue, endOfQueue) === undefined) return false;
      }
      const first = front.get(queue, 1);
      const doubtful = new Set(this.#blockersOf(queue, asked, endOfQueue));
      if (first !== undefined) doubtful.add(first.process);
      if (!this.clear(doubtful, nowUs)) return true;
    }
  }

  /** The processes whose entries one ahead of a seq waits for. */
  #blockersOf(
    queue: string,
    { permits, mode }: Pick<NewEntry, "permits" | "mode">,
    seq: bigint,
  ): readonly string[] {
    const { processesAhead, nearest, nearestWriter } = this.#statements;
    if (permits !== undefined) return processesAhead.all(queue, seq).map(({ process }) => process);
    const blocker = (mode === "read" ? nearestWriter : nearest).get(queue, seq);
    return blocker === undefined ? [] : [blocker.process];
  }

  #tellOf(queue: string, left: Left, nowUs: number): void {
    for (const { waiter, fresh } of concernedBy(this.#statements, queue, left, nowUs)) {
      const message: Message = { kind: "turn", seq: String(waiter.seq), fresh };
      this.#letters.push({ process: waiter.process, message });
    }
  }
}

/** An entry with nobody ahead. */
function shown(self: Standing, nowUs: number): Snapshot {
  return { self: entryOf(self, nowUs), ahead: nothingAhead };
}
