/**
 * Knows without asking that nobody is ahead of us: while one client alone uses a queue, the sequences of its nodes have no gap. What is ahead otherwise is
 * left to view.ts.
 *
 * Why that is enough:
 *  1. ZooKeeper numbers the children of a parent by counting all that were ever made in it. If our node n was alone in the queue and
 *     the next one that we make is n + 1, nobody made one in between: at most n is ahead of it, and n has left.
 *  2. The count begins anew with a parent that was removed and made again. So a watch is set on the parent while n is its
 *     only child. A server tells of what is watched before it answers anything later: if it has told nothing, the parent is the same.
 *  3. With the connection all of this is forgotten.
 */
import type { ZooSession } from "./client/index.ts";
import { lastSequence } from "./nodes.ts";
import type { Own } from "./own.ts";

/** So often in a row we have to have been alone: whoever shares a lock with others seldom pays for a guess that was wrong. */
const aloneBefore = 8;

/** So many queues are remembered: those that were used last. */
const mostStreaks = 64;

/** One queue that we may be alone in. */
export class Streak {
  readonly #session: ZooSession;
  readonly #parent: string;
  /** The last entry that had nobody ahead, and how many had none in a row. */
  #last: Own | null = null;
  #count = 0;
  /** Whether the parent is watched, and has been the same ever since. */
  #watched = false;
  /** Whether a node is being made whose sequence will tell. */
  #underWay = false;

  constructor(session: ZooSession, parent: string) {
    this.#session = session;
    this.#parent = parent;
  }

  /** Whether the sequence of a node that is made next may tell that nobody is ahead. To be followed by `follows` or `end`. */
  begin(): boolean {
    if (!this.#watched || this.#underWay || this.#last?.left !== true) return false;
    this.#underWay = true;
    return true;
  }

  /** Whether a node of this name, made after `begin` said so, surely has nobody ahead of it. */
  follows(name: string): boolean {
    const sequence = Number(name.slice(-10));
    const last = this.#watched && this.#last?.left === true ? this.#last : null;
    // The last number of all is given more than once.
    if (last !== null && sequence === last.node.sequence + 1 && sequence < lastSequence) return true;
    this.end();
    return false;
  }

  /** An entry of ours is alone in its queue. */
  add(own: Own): void {
    this.#underWay = false;
    this.#last = own;
    this.#count += 1;
    if (!this.#watched && this.#count % aloneBefore === 0) void this.#watch(own);
  }

  /** Somebody else is there, or nothing is known. */
  end(): void {
    this.#underWay = false;
    this.#last = null;
    this.#count = 0;
    if (this.#watched) this.#session.unwatch(this.#parent, this.#changed);
    this.#watched = false;
  }

  readonly #changed = (): void => this.end();

  async #watch(own: Own): Promise<void> {
    try {
      const stat = await this.#session.exists(this.#parent, this.#changed);
      // The last that came or went is our node, and it is the only one.
      this.#watched = this.#last === own && stat?.pzxid === own.seq && stat.numChildren === 1;
    } catch {
      // Then it is not watched; whoever asks next is told why.
    }
    if (!this.#watched) this.#session.unwatch(this.#parent, this.#changed);
  }
}

/** The queues that one session may be alone in. */
export class Streaks {
  readonly #session: ZooSession;
  /** By the path of the queue; the one that was used last is the last. */
  readonly #streaks = new Map<string, Streak>();

  constructor(session: ZooSession) {
    this.#session = session;
    session.onState(() => this.#forget());
  }

  of(parent: string): Streak {
    const streak = this.#streaks.get(parent) ?? new Streak(this.#session, parent);
    this.#streaks.delete(parent);
    this.#streaks.set(parent, streak);
    if (this.#streaks.size > mostStreaks) this.#drop();
    return streak;
  }

  #drop(): void {
    const [oldest] = this.#streaks;
    if (oldest === undefined) return;
    this.#streaks.delete(oldest[0]);
    oldest[1].end();
  }

  #forget(): void {
    for (const streak of this.#streaks.values()) streak.end();
    this.#streaks.clear();
  }
}
