/** What a claim has to remember only while it waits: made when the store does not grant it at once. */
import type { Ahead, Entry } from "./backend.ts";

const never = Number.POSITIVE_INFINITY;

/** The moments, counts and subscriptions of a wait. */
export class Wait {
  /** When the caller's patience ends; null: never. These are null rather than Infinity since each number takes space. */
  giveUpAt: number | null = null;
  /** By when the store has to answer; null while it is not being asked. */
  answerBy: number | null = null;
  /** When to look again without a hint. */
  lookAt: number | null = null;
  /** Counts the questions to the store: the answer to an earlier one is not waited for any more. */
  question = 0;
  /** Failures since the last answer. */
  tries = 0;
  /** Grants that came too late to be believed. */
  lateGrants = 0;
  /** How often those ahead were evicted. */
  thefts = 0;
  /** An append may have reached the store without our hearing of it. */
  mayBeThere = false;
  /** How many were ahead when we last heard, and the last of them; -1 before that. */
  seenAhead = -1;
  seenNearest: Entry | null = null;
  /** Whether it has stood in the queue behind others. */
  queued = false;
  /** The entry of the same client whose leaving alone it waits for; null if there is none. */
  behind: string | null = null;
  /** How many before it, without a break, had the lock from one another rather than from the store. */
  handOvers = 0;
  /** Ends listening to the caller's signal. */
  endListening: (() => void) | null = null;
  /** Called when the last question is answered after the end. */
  onAnswer: (() => void) | null = null;
  /** Its place among the first appends of its client, if it has one. */
  turn: { passOn(): void } | null = null;
  private watches = 0;
  private unwatch: (() => void) | null = null;

  get asking(): boolean {
    return this.answerBy !== null;
  }

  nextMoment(): number {
    return Math.min(this.giveUpAt ?? never, this.answerBy ?? never, this.lookAt ?? never);
  }

  /** Remembers what is ahead, for the message if the wait is in vain. */
  see(ahead: Ahead): void {
    this.seenAhead = ahead.count;
    this.seenNearest = ahead.nearest;
  }

  /** Lets the next request of the same client go. */
  passOn(): void {
    this.turn?.passOn();
    this.turn = null;
  }

  /** Ends the watch before, and gives the number of the new one. */
  beginWatch(): number {
    this.endWatch();
    this.queued = true;
    return ++this.watches;
  }

  /** A watch stands: keep its end, or end it at once if it does not count any more. */
  stands(watch: number, unwatch: () => void): void {
    if (this.watches === watch) this.unwatch = unwatch;
    else unwatch();
  }

  endWatch(): void {
    const { unwatch } = this;
    this.unwatch = null;
    this.watches += 1;
    unwatch?.();
  }
}
