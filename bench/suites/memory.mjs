/** Locks within one process: the memory backend against async-mutex, async-lock and a bare promise queue, the floor. */
import { createRequire } from "node:module";
import {
  assertExclusive,
  bytesPerHeldLock,
  bytesPerWaiter,
  handOverMicros,
  idle,
  pairsPerSecond,
} from "../workloads.mjs";

/** @import { Suite } from "../types.ts" */
/** @import { Request } from "../workloads.mjs" */

/**
 * @typedef {object} Subject
 * @property {Request} request the callback form
 * @property {() => Promise<void>} [pair] acquire and release as two calls, as its users write them
 * @property {(name: string) => Promise<unknown>} [hold] acquires, and gives what a holder keeps
 * @property {() => Promise<number>} [countPending]
 */

const exposeGc = ["--expose-gc"];
const many = 100_000;
const throughput = ["uncontended", "contended16"];

/** @type {Suite<Subject, undefined>} */
export const suite = {
  name: "memory",
  floor: "promise-queue",

  metrics: {
    uncontended_ops: { unit: "pairs/s", better: "higher" },
    uncontended_acquire_ops: { unit: "pairs/s", better: "higher" },
    contended16_ops: { unit: "pairs/s", better: "higher" },
    handover_us_10: { unit: "µs", better: "lower" },
    handover_us_100k: { unit: "µs", better: "lower" },
    bytes_per_waiter: { unit: "bytes", better: "lower" },
    bytes_per_held_lock: { unit: "bytes", better: "lower" },
  },

  measurements: {
    uncontended: {
      run: async ({ request }, budget) => ({
        uncontended_ops: await pairsPerSecond(() => request("pair", idle), {
          loopers: 1,
          pairsPerLoop: 2000,
          budget,
        }),
      }),
    },
    uncontendedAcquire: {
      run: async ({ pair }, budget) => ({
        uncontended_acquire_ops: await pairsPerSecond(given(pair), {
          loopers: 1,
          pairsPerLoop: 2000,
          budget,
        }),
      }),
    },
    contended16: {
      run: async ({ request }, budget) => {
        await assertExclusive(request);
        const pair = () => request("pair", idle);
        return { contended16_ops: await pairsPerSecond(pair, { loopers: 16, pairsPerLoop: 200, budget }) };
      },
    },
    handOver10: {
      nodeFlags: exposeGc,
      run: async ({ request, countPending }, budget) => ({
        handover_us_10: await handOverMicros(request, { waiters: 10, budget, countPending }),
      }),
    },
    handOver100k: {
      nodeFlags: exposeGc,
      run: async ({ request, countPending }, budget) => ({
        handover_us_100k: await handOverMicros(request, { waiters: many, budget, countPending }),
      }),
    },
    waiterBytes: {
      once: true,
      nodeFlags: exposeGc,
      run: async ({ request }) => ({ bytes_per_waiter: await bytesPerWaiter(request, many) }),
    },
    heldBytes: {
      once: true,
      nodeFlags: exposeGc,
      run: async ({ hold }) => ({ bytes_per_held_lock: await bytesPerHeldLock(given(hold), many) }),
    },
  },

  contenders: [
    {
      name: "holdfast",
      measurements: [...throughput, "handOver10", "handOver100k", "waiterBytes", "heldBytes"],
      fullOnly: ["uncontendedAcquire"],
      async open() {
        // Not a literal: the type checker runs before the package is built.
        const built = new URL("../../dist/index.js", import.meta.url).href;
        const { connect } = await import(built);
        const locks = await connect("memory:");
        return {
          request: (name, run) => locks.request(name, run),
          pair: async () => {
            const lock = await locks.acquire("pair");
            await lock.release();
          },
          hold: (name) => locks.acquire(name),
          countPending: async () => (await locks.query()).pending.length,
        };
      },
    },
    {
      name: "async-mutex",
      measurements: throughput,
      fullOnly: ["uncontendedAcquire", "handOver10", "handOver100k", "waiterBytes", "heldBytes"],
      async open() {
        // Its CommonJS build, which is several times faster than its ES module build.
        const { Mutex } = createRequire(import.meta.url)("async-mutex");
        const mutex = new Mutex();
        const named = new Map();
        return {
          // It has no names: one bare mutex, at its best.
          request: (_name, run) => mutex.runExclusive(run),
          pair: async () => {
            const release = await mutex.acquire();
            release();
          },
          hold: (name) => {
            const own = new Mutex();
            named.set(name, own);
            return own.acquire();
          },
        };
      },
    },
    {
      name: "async-lock",
      measurements: ["contended16"],
      fullOnly: ["uncontended", "handOver10", "handOver100k", "waiterBytes"],
      async open() {
        const { default: AsyncLock } = await import("async-lock");
        const lock = new AsyncLock({ maxPending: Infinity });
        return { request: (name, run) => lock.acquire(name, run) };
      },
    },
    {
      name: "promise-queue",
      measurements: throughput,
      fullOnly: ["handOver10", "handOver100k", "waiterBytes"],
      async open() {
        return { request: promiseQueue() };
      },
    },
    {
      name: "fenced-queue",
      measurements: [],
      fullOnly: [...throughput, "handOver10", "handOver100k", "waiterBytes"],
      async open() {
        return { request: fencedQueue() };
      },
    },
  ],

  ratios: {
    uncontended_ops_vs_async_mutex: {
      of: { contender: "holdfast", metric: "uncontended_ops" },
      to: [{ contender: "async-mutex", metric: "uncontended_ops" }],
    },
    uncontended_acquire_ops_vs_async_mutex: {
      fullOnly: true,
      of: { contender: "holdfast", metric: "uncontended_acquire_ops" },
      to: [{ contender: "async-mutex", metric: "uncontended_acquire_ops" }],
    },
    contended16_ops_vs_best_peer: {
      of: { contender: "holdfast", metric: "contended16_ops" },
      to: [
        { contender: "async-mutex", metric: "contended16_ops" },
        { contender: "async-lock", metric: "contended16_ops" },
      ],
    },
    contended16_ops_vs_fenced_queue: {
      fullOnly: true,
      of: { contender: "holdfast", metric: "contended16_ops" },
      to: [{ contender: "fenced-queue", metric: "contended16_ops" }],
    },
    fenced_queue_contended16_ops_vs_best_peer: {
      fullOnly: true,
      of: { contender: "fenced-queue", metric: "contended16_ops" },
      to: [
        { contender: "async-mutex", metric: "contended16_ops" },
        { contender: "async-lock", metric: "contended16_ops" },
      ],
    },
    handover_us_100k_waiters_vs_10: {
      of: { contender: "holdfast", metric: "handover_us_100k" },
      to: [{ contender: "holdfast", metric: "handover_us_10" }],
    },
    floor_handover_us_100k_waiters_vs_10: {
      fullOnly: true,
      of: { contender: "promise-queue", metric: "handover_us_100k" },
      to: [{ contender: "promise-queue", metric: "handover_us_10" }],
    },
    fenced_queue_handover_us_100k_waiters_vs_10: {
      fullOnly: true,
      of: { contender: "fenced-queue", metric: "handover_us_100k" },
      to: [{ contender: "fenced-queue", metric: "handover_us_10" }],
    },
  },
};

/**
 * The least that takes turns by name: each request runs after the one before it.
 * @returns {Request}
 */
function promiseQueue() {
  /** @type {Map<string, Promise<void>>} */
  const tails = new Map();
  return (name, run) => {
    const result = (tails.get(name) ?? Promise.resolve()).then(run);
    const leave = () => {
      if (tails.get(name) === tail) tails.delete(name);
    };
    const tail = result.then(leave, leave);
    tails.set(name, tail);
    return result;
  };
}

/**
 * A form that a measurement needs and its contenders therefore have.
 * @template T
 * @param {T | undefined} form
 * @returns {T}
 */
function given(form) {
  if (form === undefined) throw new Error("the contender lacks the form that is measured");
  return form;
}

/**
 * The least that a lock with a token, a ttl and loss detection has to do: a token for each request, a queue, a turn in the
 * caller's async context, and a look at both clocks when the section ends; the next one's ttl may count from that look. It
 * renews, expires, cancels and shows nothing.
 * @returns {Request}
 */
function fencedQueue() {
  /** @typedef {{ token: bigint, validUntil: number, wallUntil: number, next: Entry | null, wake: (() => void) | null }} Entry */
  const ttlMs = 30_000;
  /** @type {Map<string, { first: Entry | null, last: Entry | null }>} */
  const queues = new Map();
  let token = BigInt(Date.now()) * 1000n;
  let now = 0;
  let wallNow = 0;
  let fresh = false;
  const outdate = () => {
    fresh = false;
  };
  const look = () => {
    now = performance.now();
    wallNow = Date.now();
    if (!fresh) setImmediate(outdate);
    fresh = true;
  };
  return (name, run) =>
    new Promise((resolve, reject) => {
      const queue = queues.get(name) ?? { first: null, last: null };
      queues.set(name, queue);
      /** @type {Entry} */
      const entry = { token: ++token, validUntil: 0, wallUntil: 0, next: null, wake: null };
      const { last } = queue;
      queue.last = entry;
      if (last === null) queue.first = entry;
      else last.next = entry;
      const turn =
        last === null
          ? Promise.resolve()
          : new Promise((/** @type {(value?: undefined) => void} */ wake) => {
              entry.wake = wake;
            });
      const leave = () => {
        queue.first = entry.next;
        if (queue.first === null) queue.last = null;
        else queue.first.wake?.();
      };
      void turn.then(() => {
        if (!fresh) look();
        entry.validUntil = now + ttlMs;
        entry.wallUntil = wallNow + ttlMs;
        run().then((value) => {
          look();
          const lost = now > entry.validUntil || wallNow > entry.wallUntil;
          leave();
          if (lost) reject(new Error("lost"));
          else resolve(value);
        }, reject);
      });
    });
}
