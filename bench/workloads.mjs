/**
 * What is done with a lock while it is measured, the same for every contender: loops of pairs, drains of a queue,
 * heap per waiter and per held lock. How a contender locks is left to the functions that are handed in.
 */
import { setImmediate as turn } from "node:timers/promises";
import { summarize } from "./statistics.mjs";

/** @import { Budget } from "./types.ts" */

/**
 * The callback form of a lock.
 * @typedef {(name: string, run: () => Promise<void>) => Promise<void>} Request
 */

/** What has to outlive a measurement of the heap. */
const reachable = new Set();

/** The section that every contender runs in the callback form. It takes no argument: async-lock counts them. */
export const idle = async () => {};

/**
 * Pairs of acquire and release per second. Loopers repeat `pair` in blocks; a block ends with a turn of the event
 * loop, so that work which a contender puts off is part of the time.
 * @param {() => Promise<void>} pair
 * @param {{ loopers: number, pairsPerLoop: number, budget: Budget }} shape
 */
export async function pairsPerSecond(pair, { loopers, pairsPerLoop, budget }) {
  const loop = async () => {
    for (let i = 0; i < pairsPerLoop; i++) await pair();
  };
  const measureFor = async (/** @type {number} */ ms) => {
    const start = performance.now();
    let blocks = 0;
    let elapsedMs = 0;
    while (elapsedMs < ms) {
      await Promise.all(Array.from({ length: loopers }, loop));
      await turn();
      blocks++;
      elapsedMs = performance.now() - start;
    }
    return (blocks * loopers * pairsPerLoop * 1000) / elapsedMs;
  };
  await measureFor(budget.warmUpMs);
  return measureFor(budget.measureMs);
}

/**
 * Runs so many pairs before a contender is measured, the same number for each. Code is compiled after some thousand calls, and where a
 * pair takes a millisecond a time would not do: a contender that is faster, or has less code, would be further by then.
 * @param {number} count
 * @param {() => unknown} pair
 */
export async function warmUp(count, pair) {
  for (let left = count; left > 0; left--) await pair();
}

/**
 * As pairMicros, warmed by a number of pairs.
 * @param {number} warm
 * @param {() => unknown} pair
 * @param {number} measureMs
 */
export async function pairMicrosAfter(warm, pair, measureMs) {
  await warmUp(warm, pair);
  return pairMicros(pair, { warmUpMs: 0, measureMs });
}

/**
 * Microseconds of one pair of acquire and release after the other, the median.
 * @param {() => unknown} pair
 * @param {Budget} budget
 */
export async function pairMicros(pair, { warmUpMs, measureMs }) {
  const measureFor = async (/** @type {number} */ ms) => {
    const samples = [];
    const until = performance.now() + ms;
    for (let before = performance.now(); before < until;) {
      await pair();
      const now = performance.now();
      samples.push((now - before) * 1000);
      before = now;
    }
    return samples;
  };
  await measureFor(warmUpMs);
  return summarize(await measureFor(measureMs)).median;
}

/**
 * Fails if two sections of one name overlap: what does not exclude is not worth measuring.
 * @param {Request} request
 */
export async function assertExclusive(request) {
  let inside = 0;
  const section = async () => {
    inside++;
    await turn();
    if (inside !== 1) throw new Error("two holders at once");
    inside--;
  };
  await Promise.all(Array.from({ length: 16 }, () => request("exclusive", section)));
}

/**
 * Puts one holder and many waiters on one name.
 * @param {Request} request
 * @param {number} waiters at least 2
 * @returns {Promise<() => Promise<number>>} drains the queue and gives the milliseconds between the first and the
 *   last waiter's start, which are `waiters - 1` hand-overs and nothing else
 */
async function queueUp(request, waiters) {
  let started = 0;
  let firstAt = 0;
  let lastAt = 0;
  const section = async () => {
    started++;
    if (started === 1) firstAt = performance.now();
    else if (started === waiters) lastAt = performance.now();
  };
  /** @type {(() => void) | undefined} */
  let leave;
  const held = request(
    "queue",
    () =>
      new Promise((resolve) => {
        leave = resolve;
      }),
  );
  for (let i = 1; i < waiters; i++) void request("queue", section);
  const last = request("queue", section);
  // Everything that queueing does in steps is done before the queue counts as full.
  await turn();
  await turn();
  if (started > 0) throw new Error("a waiter got in while the lock was held");
  return async () => {
    if (leave === undefined) throw new Error("the first request was not granted");
    leave();
    await Promise.all([held, last]);
    if (started !== waiters) throw new Error(`the last of ${waiters} waiters went in as number ${started}`);
    return lastAt - firstAt;
  };
}

/**
 * Microseconds per hand-over while a queue of this many waiters drains. Filling the queue is not part of the time.
 * The median of samples of at least 10,000 hand-overs each: a sample pays for the garbage of its hand-overs, and
 * a stolen time slice spoils one sample alone. Needs node --expose-gc.
 * @param {Request} request
 * @param {{ waiters: number, budget: Budget, countPending?: (() => Promise<number>) | undefined }} shape
 *   countPending: says how many wait, where a contender can tell, to check that a full queue is one
 */
export async function handOverMicros(request, { waiters, budget, countPending }) {
  const warmUpWaiters = 1000;
  const drain = await queueUp(request, warmUpWaiters);
  const pending = (await countPending?.()) ?? warmUpWaiters;
  if (pending !== warmUpWaiters) throw new Error(`${pending} of ${warmUpWaiters} waiters are queued`);
  await drain();

  // A quarter of the budget is for draining: filling takes the rest. The same warm-up whatever is measured, so that
  // code which is compiled alike is compared.
  await sampleHandOvers(request, warmUpWaiters, budget.warmUpMs / 4);
  const samples = await sampleHandOvers(request, waiters, budget.measureMs / 4);
  return summarize(samples).median;
}

/**
 * @param {Request} request
 * @param {number} waiters
 * @param {number} ms of draining to fill with samples; at least 3 samples, unless that takes a second
 */
async function sampleHandOvers(request, waiters, ms) {
  const drains = Math.ceil(10_000 / (waiters - 1));
  const samples = [];
  let totalMs = 0;
  while (totalMs < ms || (samples.length < 3 && totalMs < 1000)) {
    let drainMs = 0;
    for (let i = 0; i < drains; i++) {
      const drain = await queueUp(request, waiters);
      // Copying what filling a long queue left in the young heap is a cost of filling. Not between short drains:
      // a forced collection slows down what comes right after it, which a long drain does not notice.
      if (drains === 1) collectGarbage();
      drainMs += await drain();
    }
    samples.push((drainMs * 1000) / (drains * (waiters - 1)));
    totalMs += drainMs;
  }
  return samples;
}

/**
 * Heap bytes for each waiter in a queue of one name. Leaves the queue as it is.
 * @param {Request} request
 * @param {number} waiters
 */
export async function bytesPerWaiter(request, waiters) {
  const drainFirst = await queueUp(request, 1000);
  await drainFirst();
  const before = await usedBytes();
  const drain = await queueUp(request, waiters);
  const bytes = ((await usedBytes()) - before) / waiters;
  // A queue whose holder nobody can end any more would be garbage, and cost nothing.
  reachable.add(drain);
  return bytes;
}

/**
 * Heap bytes for each lock that is held, on names of their own; names and the list of handles are not counted.
 * @param {(name: string) => Promise<unknown>} hold gives what the holder has to keep
 * @param {number} locks
 */
export async function bytesPerHeldLock(hold, locks) {
  const names = Array.from({ length: locks }, (_, index) => `lock:${index}`);
  /** @type {unknown[]} */
  const handles = Array.from({ length: locks }, () => null);
  for (let i = 0; i < 1000; i++) await hold(`warm:${i}`);
  const before = await usedBytes();
  for (const [index, name] of names.entries()) handles[index] = await hold(name);
  const bytes = ((await usedBytes()) - before) / locks;
  if (handles.includes(null)) throw new Error("a lock was not granted");
  return bytes;
}

/** What is reachable now. Needs node --expose-gc. */
async function usedBytes() {
  for (let i = 0; i < 3; i++) {
    await turn();
    collectGarbage();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function collectGarbage() {
  if (globalThis.gc === undefined) throw new Error("run node with --expose-gc");
  globalThis.gc();
}
