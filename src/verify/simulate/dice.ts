/** Chance from a seed: the same seed and stream always give the same numbers. Not for secrets. */

/** One stream of chance. Give each thing that draws its own stream, so that one does not disturb the other. */
export class Dice {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  constructor(seed: number, stream: number) {
    this.#a = seed | 0;
    this.#b = (seed / 2 ** 32) | 0;
    this.#c = stream | 0;
    // Seeds that differ in one bit have to differ in all of them before the first number is used.
    for (let round = 0; round < 12; round += 1) this.fraction();
  }

  /** A fraction in [0, 1), as Math.random gives them: by the small fast counter generator of 32-bit words. */
  readonly fraction = (): number => {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };

  chance(probability: number): boolean {
    return probability > 0 && this.fraction() < probability;
  }

  /** A number of [low, high). */
  between(low: number, high: number): number {
    return low + (high - low) * this.fraction();
  }

  /** A whole number of [low, high], both included. */
  whole(low: number, high: number): number {
    return low + Math.floor((high - low + 1) * this.fraction());
  }

  pick<T>(first: T, ...others: readonly T[]): T {
    const at = Math.floor((others.length + 1) * this.fraction());
    return at === 0 ? first : (others[at - 1] ?? first);
  }

  shuffle(items: unknown[]): void {
    for (let at = items.length - 1; at > 0; at -= 1) {
      const other = this.whole(0, at);
      [items[at], items[other]] = [items[other], items[at]];
    }
  }
}
