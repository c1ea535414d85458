/** How many entries, and how much weight, stand before a place in a line: two Fenwick trees, O(log n) a question. */

/** Sums over a line of numbered places; places are handed out in order and given up in any order. */
export class Ranks {
  readonly #capacity: number;
  readonly #counts: Int32Array;
  readonly #weights: Float64Array;
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#counts = new Int32Array(capacity + 1);
    this.#weights = new Float64Array(capacity + 1);
  }

  /** Whether there is no place left: build a new one from what is still in line. */
  get full(): boolean {
    return this.#next === this.#capacity;
  }

  /** Takes the next place. */
  append(weight: number): number {
    const place = this.#next++;
    this.#add(place, 1, weight);
    return place;
  }

  /** Gives a place up. */
  remove(place: number, weight: number): void {
    this.#add(place, -1, -weight);
  }

  /** What stands before a place. */
  before(place: number): { count: number; weight: number } {
    let count = 0;
    let weight = 0;
    for (let node = place; node > 0; node &= node - 1) {
      count += this.#counts[node] ?? 0;
      weight += this.#weights[node] ?? 0;
    }
    return { count, weight };
  }

  #add(place: number, count: number, weight: number): void {
    for (let node = place + 1; node <= this.#capacity; node += node & -node) {
      this.#counts[node] = (this.#counts[node] ?? 0) + count;
      this.#weights[node] = (this.#weights[node] ?? 0) + weight;
    }
  }
}
