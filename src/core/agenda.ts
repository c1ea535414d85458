/**
 * Many items, few moments, one timer. Items that are due at the same moment stand in one list, so that coming and going
 * costs the same however many there are. Knows nothing of locks.
 */
import type { Clock, Timer } from "./clock.ts";
import { Heap } from "./heap.ts";

/** Something that can stand on an agenda; all three fields belong to the agenda. */
export interface Due<Self> {
  /** When it is due; null while it is on no agenda. */
  moment: Moment<Self> | null;
  earlier: Self | null;
  later: Self | null;
}

/** All that is due at one moment, in the order in which it was set. */
export class Moment<Item> {
  readonly dueAt: number;
  slot = -1;
  first: Item | null = null;
  last: Item | null = null;

  constructor(dueAt: number) {
    this.dueAt = dueAt;
  }
}

/** However far off the next moment is, look this often: after a suspension the timers of the machine are late. */
const longestSleepMs = 1_000;

/** Calls back with the items that are due, earliest first; an item is off the agenda by then. */
export class Agenda<Item extends Due<Item>> {
  private readonly clock: Clock;
  private readonly onDue: (items: Item[], now: number) => void;
  private readonly heap = new Heap<Moment<Item>>();
  private readonly moments = new Map<number, Moment<Item>>();
  /** The moment that was set last: most items are set for the same one. It is kept even while it is empty. */
  private latest: Moment<Item> | null = null;
  private timer: Timer | null = null;
  private wakeAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onDue: (items: Item[], now: number) => void) {
    this.clock = clock;
    this.onDue = onDue;
  }

  /** Puts an item on the agenda, or moves it to another moment. */
  set(item: Item, dueAt: number): void {
    if (item.moment?.dueAt === dueAt) return;
    this.remove(item);
    const moment = this.latest?.dueAt === dueAt ? this.latest : this.momentAt(dueAt);
    item.moment = moment;
    item.earlier = moment.last;
    if (moment.last === null) moment.first = item;
    else moment.last.later = item;
    moment.last = item;
    // A moment of waking that has passed belongs to a timer that is late: the machine stood still.
    const now = this.clock.recent();
    if (dueAt < this.wakeAt || this.wakeAt < now) this.arm(now);
  }

  /** Takes an item off the agenda. */
  remove(item: Item): void {
    const { moment, earlier, later } = item;
    if (moment === null) return;
    if (earlier === null) moment.first = later;
    else earlier.later = later;
    if (later === null) moment.last = earlier;
    else later.earlier = earlier;
    item.moment = null;
    item.earlier = null;
    item.later = null;
    if (moment.first === null && moment !== this.latest) this.drop(moment);
  }

  /** What is on the agenda now, in no order. */
  items(): readonly Item[] {
    const items: Item[] = [];
    for (const moment of this.heap.items()) {
      for (let item = moment.first; item !== null; item = item.later) items.push(item);
    }
    return items;
  }

  /** Takes all items off and cancels the timer. */
  clear(): void {
    for (const item of this.items()) this.remove(item);
    this.disarm();
  }

  /** Takes all items of a moment off the agenda. */
  private take(moment: Moment<Item>, items: Item[]): void {
    for (let item = moment.first; item !== null;) {
      const { later } = item;
      item.moment = null;
      item.earlier = null;
      item.later = null;
      items.push(item);
      item = later;
    }
    moment.first = null;
    moment.last = null;
  }

  private momentAt(dueAt: number): Moment<Item> {
    let moment = this.moments.get(dueAt);
    if (moment === undefined) {
      moment = new Moment<Item>(dueAt);
      this.moments.set(dueAt, moment);
      this.heap.add(moment);
    }
    const before = this.latest;
    this.latest = moment;
    if (before !== null && before.first === null) this.drop(before);
    return moment;
  }

  private drop(moment: Moment<Item>): void {
    this.moments.delete(moment.dueAt);
    this.heap.remove(moment);
    if (this.latest === moment) this.latest = null;
  }

  private arm(now: number): void {
    const { first } = this.heap;
    this.disarm();
    if (first === undefined) return;
    const sleepMs = Math.min(Math.max(0, first.dueAt - now), longestSleepMs);
    this.wakeAt = now + sleepMs;
    this.timer = this.clock.after(sleepMs, () => this.fire());
  }

  private disarm(): void {
    this.timer?.cancel();
    this.timer = null;
    this.wakeAt = Number.POSITIVE_INFINITY;
  }

  private fire(): void {
    this.timer = null;
    const now = this.clock.now();
    const due: Item[] = [];
    for (let { first } = this.heap; first !== undefined && first.dueAt <= now; first = this.heap.first) {
      this.take(first, due);
      this.drop(first);
    }
    if (due.length > 0) this.onDue(due, now);
    if (this.latest?.first === null) this.drop(this.latest);
    this.arm(now);
  }
}
