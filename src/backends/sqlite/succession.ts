/** Whom the leaving of entries concerns: exactly those whose target left or who can be granted now. It tells nobody itself. */
import type { Ahead, Snapshot } from "../../core/backend.ts";
import { nothingAhead } from "../../core/grant.ts";
import { entryOf, type Standing, standingOf, type Statements } from "./statements.ts";

/** An entry and what is ahead of it, as processes tell each other. */
export interface Fresh<Seen = Standing> {
  readonly self: Seen;
  readonly count: number;
  readonly weight: number;
  readonly nearest: Seen | null;
  readonly nearestWriter: Seen | null;
}

/** What matters of an entry that left. */
export type Left = Pick<Standing, "seq" | "mode" | "weight" | "permits">;

/** A waiter that is to be told, and what is ahead of it now where that is known without another question. */
export interface Concerned {
  readonly waiter: Standing;
  readonly fresh: Fresh | null;
}

/**
 * Who has to hear that an entry left a queue; called after it was taken out, in the same transaction. Waiters that have
 * expired meanwhile are taken out, too, and whoever stands behind them is concerned instead.
 */
export function concernedBy(
  statements: Statements,
  queue: string,
  left: Left,
  nowUs: number,
): readonly Concerned[] {
  for (;;) {
    const row = statements.next.get(queue, left.seq);
    if (row === undefined) return [];
    const next = standingOf(row);
    if (next.untilUs <= nowUs) {
      statements.delete.run(queue, next.seq);
      continue;
    }
    if (left.permits !== undefined || next.permits !== undefined) {
      return roomFor(statements, queue, left, nowUs);
    }
    // A writer watches the entry before it, a reader the last writer before it.
    if (next.mode === "write") return [{ waiter: next, fresh: firstNow(statements, queue, next) }];
    return left.mode === "write" ? readersBehind(statements, queue, left, nowUs) : [];
  }
}

function firstNow(statements: Statements, queue: string, self: Standing): Fresh | null {
  if (statements.nearest.get(queue, self.seq) !== undefined) return null;
  return { self, count: 0, weight: 0, nearest: null, nearestWriter: null };
}

/** The readers up to the next writer. If nobody stands before them, they all hold now. */
function readersBehind(
  statements: Statements,
  queue: string,
  left: Left,
  nowUs: number,
): readonly Concerned[] {
  const first = statements.nearest.get(queue, left.seq) === undefined;
  const readers = statements.nextReaders
    .all(queue, left.seq)
    .map(standingOf)
    .filter(({ untilUs }) => untilUs > nowUs);
  let [count, weight, nearest]: [number, number, Standing | null] = [0, 0, null];
  return readers.map((self) => {
    const fresh = first ? { self, count, weight, nearest, nearestWriter: null } : null;
    count += 1;
    weight += self.weight;
    nearest = self;
    return { waiter: self, fresh };
  });
}

/** Those of a semaphore that have room now and had none before. They stand within the first permits of the queue. */
function roomFor(statements: Statements, queue: string, left: Left, nowUs: number): readonly Concerned[] {
  let most = left.permits ?? left.weight;
  let front: readonly Standing[] = [];
  for (;;) {
    front = statements.front.all(queue, most).map(standingOf);
    const wider = Math.max(...front.map(({ permits }) => permits ?? 1));
    if (front.length < most || wider <= most) break;
    most = wider;
  }
  const concerned: Concerned[] = [];
  let [count, weight]: [number, number] = [0, 0];
  let [nearest, nearestWriter]: [Standing | null, Standing | null] = [null, null];
  for (const self of front) {
    if (self.untilUs <= nowUs) continue;
    const needed = weight + self.weight;
    const has = self.permits ?? 0;
    if (self.seq > left.seq && needed <= has && needed + left.weight > has) {
      concerned.push({ waiter: self, fresh: { self, count, weight, nearest, nearestWriter } });
    }
    count += 1;
    weight = needed;
    nearest = self;
    if (self.mode === "write") nearestWriter = self;
  }
  return concerned;
}

/** What a fresh message says at a moment of the machine's clock. */
export function snapshotOf(fresh: Fresh, nowUs: number): Snapshot {
  return { self: entryOf(fresh.self, nowUs), ahead: aheadOf(fresh, nowUs) };
}

function aheadOf({ count, weight, nearest, nearestWriter }: Fresh, nowUs: number): Ahead {
  if (nearest === null) return nothingAhead;
  return {
    count,
    weight,
    nearest: entryOf(nearest, nowUs),
    nearestWriter: nearestWriter === null ? null : entryOf(nearestWriter, nowUs),
  };
}
