/**
 * The world clock of a simulation and all that is still to happen on it, in whole microseconds. One step runs one
 * thing; whoever drives it lets promises settle between steps. Knows nothing of clients and locks.
 */

/** Something that is still to happen. */
export interface Planned {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time, and what is planned: earliest first, things of one moment in the order in which they were planned. */
export class World {
  nowUs = 0;
  #orders = 0;
  readonly #heap: Planned[] = [];
  readonly #afterTurn: Array<() => void> = [];

  /** The moment in nanoseconds, as a history has it. */
  get nowNs(): bigint {
    return BigInt(this.nowUs) * 1000n;
  }

  /** Plans something. */
  after(delayUs: number, run: () => void): void {
    this.#push({ at: this.nowUs + Math.max(0, Math.ceil(delayUs)), order: this.#orders++, run });
  }

  /** Calls back in this very moment, once all promises have settled. */
  afterTurn(run: () => void): void {
    this.#afterTurn.push(run);
  }

  /** Runs what comes next. False if nothing does. */
  step(): boolean {
    if (this.#afterTurn.length > 0) {
      for (const run of this.#afterTurn.splice(0)) run();
      return true;
    }
    const next = this.#pop();
    if (next === null) return false;
    this.nowUs = next.at;
    next.run();
    return true;
  }

  #push(item: Planned): void {
    const heap = this.#heap;
    let at = heap.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent, item)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = item;
  }

  #pop(): Planned | null {
    const heap = this.#heap;
    const [first] = heap;
    const item = heap.pop();
    if (first === undefined || item === undefined || heap.length === 0) return first ?? null;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const a = heap[left];
      const b = heap[left + 1];
      const child = a !== undefined && b !== undefined && isBefore(b, a) ? b : a;
      if (child === undefined || isBefore(item, child)) break;
      heap[at] = child;
      at = child === b ? left + 1 : left;
    }
    heap[at] = item;
    return first;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
