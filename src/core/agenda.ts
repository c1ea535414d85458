/** Many moments, one timer: a binary heap of items by the moment at which each is due. Knows nothing of locks. */
import type { Clock, Timer } from "./clock.ts";

/** Something that can stand on an agenda; both fields belong to the agenda. */
export interface Due {
  dueAt: number;
  /** Its place in the heap; -1 while it is on no agenda. */
  slot: number;
}

/** However far off the next moment is, look this often: after a suspension the timers of the machine are late. */
const longestSleepMs = 1_000;

/** Calls back with the items that are due, earliest first; an item is off the agenda by then. */
export class Agenda<Item extends Due> {
  private readonly clock: Clock;
  private readonly onDue: (items: Item[], now: number) => void;
  /** The heap; only the first `size` places count: an array that is popped empty would be made anew each time. */
  private readonly heap: Array<Item | undefined> = [];
  private size = 0;
  private timer: Timer | null = null;
  private wakeAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onDue: (items: Item[], now: number) => void) {
    this.clock = clock;
    this.onDue = onDue;
  }

  /** Puts an item on the agenda, or moves it to another moment. */
  set(item: Item, dueAt: number): void {
    item.dueAt = dueAt;
    if (item.slot < 0) {
      item.slot = this.size;
      this.heap[this.size++] = item;
    }
    if (!this.rise(item)) this.sink(item);
    // A moment of waking that has passed belongs to a timer that is late: the machine stood still.
    const now = this.clock.recent();
    if (dueAt < this.wakeAt || this.wakeAt < now) this.arm(now);
  }

  /** Takes an item off the agenda. */
  remove(item: Item): void {
    const { slot } = item;
    if (slot < 0) return;
    item.slot = -1;
    const last = this.heap[--this.size];
    this.heap[this.size] = undefined;
    if (last === undefined || last === item) return;
    this.place(last, slot);
    if (!this.rise(last)) this.sink(last);
  }

  /** What is on the agenda now, in no order. */
  items(): readonly Item[] {
    return this.heap.filter((item) => item !== undefined);
  }

  /** Takes all items off and cancels the timer. */
  clear(): void {
    for (const item of this.items()) item.slot = -1;
    this.heap.length = 0;
    this.size = 0;
    this.disarm();
  }

  private arm(now: number): void {
    const [first] = this.heap;
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
    for (let first = this.heap[0]; first !== undefined && first.dueAt <= now; first = this.heap[0]) {
      this.remove(first);
      due.push(first);
    }
    if (due.length > 0) this.onDue(due, now);
    this.arm(now);
  }

  private place(item: Item, slot: number): void {
    this.heap[slot] = item;
    item.slot = slot;
  }

  /** Moves an item towards the root; says whether it moved. */
  private rise(item: Item): boolean {
    const from = item.slot;
    while (item.slot > 0) {
      const above = (item.slot - 1) >> 1;
      const parent = this.heap[above];
      if (parent === undefined || parent.dueAt <= item.dueAt) break;
      this.place(parent, item.slot);
      this.place(item, above);
    }
    return item.slot !== from;
  }

  private sink(item: Item): void {
    for (;;) {
      const child = this.earlierChild(item.slot);
      if (child === undefined || item.dueAt <= child.dueAt) return;
      const { slot } = child;
      this.place(child, item.slot);
      this.place(item, slot);
    }
  }

  private earlierChild(slot: number): Item | undefined {
    const at = 2 * slot + 1;
    if (at >= this.size) return undefined;
    const left = this.heap[at];
    const right = at + 1 < this.size ? this.heap[at + 1] : undefined;
    return left !== undefined && right !== undefined && right.dueAt < left.dueAt ? right : left;
  }
}
