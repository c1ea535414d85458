/** Chance from a seed, so that a failing run can be repeated. */
import type { Random } from "../core/clock.ts";

/** Fractions in [0, 1) that depend on the seed alone (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from 0 to below `bound`. */
export function below(random: Random, bound: number): number {
  return Math.floor(random() * bound);
}

/** One of several; throws if there is none. */
export function pick<T>(random: Random, items: readonly T[]): T {
  const item = items[below(random, items.length)];
  if (item === undefined) throw new RangeError("there is nothing to pick from");
  return item;
}
