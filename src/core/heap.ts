/** A binary heap by the moment at which each item is due. */

/** Something that can stand in a heap; its place in it belongs to the heap. */
export interface Timed {
  readonly dueAt: number;
  slot: number;
}

/** The earliest item is always at hand; adding and removing cost O(log n). */
export class Heap<Item extends Timed> {
  /** Only the first `size` places count: an array that is popped empty would be made anew each time. */
  private readonly heap: Array<Item | undefined> = [];
  private size = 0;

  get first(): Item | undefined {
    return this.heap[0];
  }

  add(item: Item): void {
    item.slot = this.size;
    this.heap[this.size++] = item;
    this.rise(item);
  }

  remove(item: Item): void {
    const { slot } = item;
    const last = this.heap[--this.size];
    this.heap[this.size] = undefined;
    if (last === undefined || last === item) return;
    this.place(last, slot);
    if (!this.rise(last)) this.sink(last);
  }

  items(): readonly Item[] {
    return this.heap.filter((item) => item !== undefined);
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
