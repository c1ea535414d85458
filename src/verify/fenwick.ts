/** A Fenwick tree: sums over prefixes of a row of numbers that change, each in O(log n). */
export class Fenwick {
  readonly #sums: Float64Array;
  #total = 0;

  constructor(size: number) {
    this.#sums = new Float64Array(size + 1);
  }

  /** Adds to the number at an index, counted from 0. */
  add(index: number, amount: number): void {
    this.#total += amount;
    const sums = this.#sums;
    for (let at = index + 1; at < sums.length; at += at & -at) sums[at] = (sums[at] ?? 0) + amount;
  }

  /** The sum of all numbers before an index. */
  below(index: number): number {
    let sum = 0;
    for (let at = index; at > 0; at -= at & -at) sum += this.#sums[at] ?? 0;
    return sum;
  }

  /** The sum of all numbers after an index. */
  above(index: number): number {
    return this.#total - this.below(index + 1);
  }
}
