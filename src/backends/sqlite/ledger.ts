/**
 * What each call does to the queues; but for the calls on one entry alone, inside a transaction that somebody else begins
 * and ends. Whom it concerns is written down, to be told after the commit.
 */
import type { NewEntry, Renewal, Renewed, Snapshot } from "../../core/backend.ts";
import { nothingAhead, ruleOf } from "../../core/grant.ts";
import type { Machine } from "./machine.ts";
import type { Message } from "./messages.ts";
import { entryOf, insert, type Standing, standingFor, standingOf, type Statements } from "./statements.ts";
import { concernedBy, type Fresh, snapshotOf } from "./succession.ts";

/** A message and the process that it is for. */
export interface Letter {
  readonly process: string;
  readonly message: Message;
}

/** The process and the client that an entry belongs to. */
export type Address = Pick<Standing, "process" | "slot">;

/** What is ahead of an entry; null if nobody is. */
type Ahead = (Omit<Fresh, "self"> & { readonly nearest: Standing }) | null;

/** Thrown inside a transaction: no seq as high may be given out before the disk has a higher ceiling. */
export class CeilingReached extends Error {
  readonly seq: bigint;

  constructor(seq: bigint) {
    super("the ceiling of the seqs is reached");
    this.seq = seq;
  }
}

const endOfQueue = 2n ** 63n - 1n;

/** The queues of a file, as one connection writes them. */
export class Ledger {
  readonly #statements: Statements;
  readonly #machine: Machine;
  readonly #isGone: (process: string) => boolean;
  #letters: Letter[] = [];
  /** The last seq that this connection has given out. */
  #lastSeq = 0n;

  constructor(statements: Statements, machine: Machine, isGone: (process: string) => boolean) {
    this.#statements = statements;
    this.#machine = machine;
    this.#isGone = isGone;
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
    const nowUs = this.#machine.nowUs();
    const wallUs = this.#wallUs();
    const seq = wallUs > this.#lastSeq ? wallUs : this.#lastSeq + 1n;
    const self = standingFor(asked, seq, nowUs, owner);
    if (insert(this.#statements.insertAlone, queue, self, false) === 0) return null;
    this.#lastSeq = seq;
    return shown(self, null, nowUs);
  }

  /** Takes out a live entry that is alone in its queue, so that nobody has to be told; by one statement, too. */
  removeAlone(queue: string, id: string): boolean {
    return this.#statements.deleteAlone.run(queue, id, this.#machine.nowUs()) > 0;
  }

  append(queue: string, asked: NewEntry, owner: Address): Snapshot | null {
    const nowUs = this.#machine.nowUs();
    let known = this.#find(queue, asked.id);
    if (known !== undefined && known.untilUs <= nowUs) {
      this.expire(queue, nowUs);
      known = undefined;
    }
    const seq = known?.seq ?? endOfQueue;
    let ahead = this.#ahead(queue, seq, nowUs);
    while (ahead !== null && this.clear(this.#doubtful(queue, asked, seq, ahead), nowUs)) {
      ahead = this.#ahead(queue, seq, nowUs);
    }
    if (known !== undefined) return shown(known, ahead, nowUs);
    if (asked.onlyIfGranted === true && ahead !== null) {
      const would = shown(ahead.nearest, ahead, nowUs);
      if (!ruleOf(asked).grants(asked, would.ahead)) return null;
    }
    return this.#join(queue, asked, owner, nowUs, ahead);
  }

  renew({ queue, id, seq, ttlMs }: Renewal): Renewed {
    const nowUs = this.#machine.nowUs();
    const row = this.#statements.renew.get(nowUs + Math.floor(ttlMs * 1000), queue, seq, id, nowUs);
    if (row !== undefined) return { outcome: "renewed", expiresInMs: (Number(row.until) - nowUs) / 1000 };
    return { outcome: "gone", evicted: this.#statements.wasEvicted.get(seq, nowUs) !== undefined };
  }

  remove(queue: string, id: string, evict: boolean, seq?: bigint): boolean {
    const nowUs = this.#machine.nowUs();
    const entry = this.#find(queue, id);
    if (entry === undefined || (seq !== undefined && entry.seq !== seq)) return false;
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
    this.#tellOf(queue, entry, nowUs);
    return wasLive;
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
    if (this.#machine.bootId === null) setClock.run(nowUs);
  }

  #join(queue: string, asked: NewEntry, owner: Address, nowUs: number, ahead: Ahead): Snapshot {
    const next = this.#statements.nextSeq.get(this.#wallUs());
    if (next === undefined) throw new Error("the store has no row");
    if (next.seq > next.ceiling) throw new CeilingReached(next.seq);
    const self = standingFor(asked, next.seq, nowUs, owner);
    insert(this.#statements.insert, queue, self, ahead !== null);
    this.#lastSeq = next.seq;
    return shown(self, ahead, nowUs);
  }

  #wallUs(): bigint {
    return BigInt(Math.floor(this.#machine.wallMs() * 1000));
  }

  #find(queue: string, id: string): Standing | undefined {
    const first = this.#statements.front.get(queue, 1);
    const row = first?.id === id ? first : this.#statements.byId.get(queue, id);
    return row === undefined ? undefined : standingOf(row);
  }

  /** What is ahead of a seq, after taking out what has expired. */
  #ahead(queue: string, seq: bigint, nowUs: number): Ahead {
    const { ahead, nearest: nearestOf, nearestWriter: writerOf } = this.#statements;
    let sums = ahead.get(queue, seq);
    if (sums?.until != null && sums.until <= nowUs) {
      this.expire(queue, nowUs);
      sums = ahead.get(queue, seq);
    }
    const row = nearestOf.get(queue, seq);
    if (sums === undefined || row === undefined) return null;
    const nearest = standingOf(row);
    const writer = nearest.mode === "write" ? row : writerOf.get(queue, seq);
    const nearestWriter = writer === undefined ? null : standingOf(writer);
    return { count: Number(sums.count), weight: Number(sums.weight), nearest, nearestWriter };
  }

  /** The processes of which it matters, to one who asks, whether they live: those of the entries that block it. */
  #doubtful(queue: string, asked: NewEntry, seq: bigint, ahead: NonNullable<Ahead>): ReadonlySet<string> {
    const { processesAhead, front } = this.#statements;
    if (asked.permits !== undefined) {
      return new Set(processesAhead.all(queue, seq).map(({ process }) => process));
    }
    const blocker = asked.mode === "read" ? ahead.nearestWriter : ahead.nearest;
    const first = asked.onlyIfGranted === true ? front.get(queue, 1) : undefined;
    return new Set([blocker, first].flatMap((entry) => entry?.process ?? []));
  }

  #tellOf(queue: string, left: Standing, nowUs: number): void {
    for (const { waiter, fresh } of concernedBy(this.#statements, queue, left, nowUs)) {
      const message: Message = { kind: "turn", queue, id: waiter.id, fresh };
      this.#letters.push({ process: waiter.process, message });
    }
  }
}

function shown(self: Standing, ahead: Ahead, nowUs: number): Snapshot {
  if (ahead === null) return { self: entryOf(self, nowUs), ahead: nothingAhead };
  return snapshotOf({ self, ...ahead }, nowUs);
}
