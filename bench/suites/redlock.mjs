/**
 * Locks on five independent Redis servers: holdfast with and without tokens, against the libraries of Node.js, and against
 * the least that could do it on the same client: SET NX PX on all, decided at the third answer, and a script that releases.
 * The same on bare sockets shows what the client takes, and the same in batches what can be had with many under way.
 */
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { drainFleet } from "../fleet.mjs";
import { bareQuorum, leastQuorum, majority, releaseIfMine } from "../redlock-bounds.mjs";
import { idle, pairMicrosAfter } from "../workloads.mjs";
import { startRedis } from "../../scripts/lib/redis-servers.mjs";
import { throughputAfter } from "./redis.mjs";

/** @import { Contender, Suite } from "../types.ts" */

/** @typedef {{ ports: readonly number[] }} Context */
/**
 * @typedef {object} Subject
 * @property {(name: string, run: () => Promise<void>) => Promise<unknown>} request
 */

const load = createRequire(import.meta.url);
const nodes = 5;
const quorum = 3;
const ttlMs = 10_000;

/** Connections of ioredis, the same for all contenders. */
function connections(/** @type {Context} */ { ports }, options = {}) {
  const { Redis } = load("ioredis");
  return ports.map((port) => new Redis(port, "127.0.0.1", options));
}

/** How many pairs, of ten commands each, until the code of all contenders is compiled, and then with 256 under way: the same for each. */
const warmPairs = 2_500;
const warmPairs256 = 2_000;

/** How fast a peer tries again where it can be told, for the drain: its own setting would mostly measure its sleep. */
const quickly = { retryCount: 100_000, retryDelay: 10, retryJitter: 5 };

const all = ["pairs", "drain"];
const peers = ["redlock@4", "redlock@5", "@sesamecare-oss/redlock", "redis-semaphore", "redlock-universal"];

/** @type {Suite<Subject, Context>} */
export const suite = {
  name: "redlock",
  floor: "set-nx",

  metrics: {
    pair_us: { unit: "µs", better: "lower" },
    pairs_256: { unit: "pairs/s", better: "higher" },
    cpu_us_per_pair_256: { unit: "µs", better: "lower" },
    drain_ms_4x8: { unit: "ms", better: "lower" },
  },

  measurements: {
    // One after the other in one process: what is compiled for the first is so for the second.
    pairs: {
      run: async (subject, { measureMs }) => {
        const pair_us = await pairMicrosAfter(warmPairs, () => subject.request("pair", idle), 2 * measureMs);
        return { pair_us, ...(await throughputAfter(subject, { warmUpMs: 0, measureMs }, warmPairs256)) };
      },
    },
    drain: {
      deadlineMs: 120_000,
      run: async (_subject, _budget, job) => {
        const shape = { processes: 4, waiters: 8, holdMs: 1, drains: 3 };
        return { drain_ms_4x8: (await drainFleet(job, shape)).drainMs };
      },
    },
  },
  quickRounds: 1,

  contenders: [
    holdfast("holdfast", false),
    holdfast("holdfast, with tokens", true),
    {
      name: "set-nx",
      measurements: ["pairs"],
      async open(context) {
        const clients = connections(context);
        const digests = await Promise.all(clients.map((client) => client.script("LOAD", releaseIfMine)));
        const [digest] = digests;
        return {
          request: async (name, run) => {
            const value = randomBytes(16).toString("hex");
            await majority(quorum, clients, (client) => client.set(name, value, "PX", ttlMs, "NX"), "OK");
            await run();
            await majority(quorum, clients, (client) => client.evalsha(digest, 1, name, value), 1);
          },
        };
      },
    },
    {
      name: "set-nx on bare sockets",
      measurements: [],
      fullOnly: ["pairs"],
      open: ({ ports }) => bareQuorum(ports, quorum, ttlMs),
    },
    {
      name: "least-batch",
      measurements: [],
      fullOnly: ["pairs"],
      open: (context) => leastQuorum(connections(context), quorum, ttlMs),
    },
    {
      // No drain, as for its fork: attempts in vain are in the way of one another until their ttl ends, and again then.
      name: "redlock@5",
      measurements: ["pairs"],
      async open(context) {
        const { default: Redlock } = load("redlock-5");
        return byAcquire(new Redlock(connections(context), quickly));
      },
    },
    {
      name: "@sesamecare-oss/redlock",
      measurements: ["pairs"],
      async open(context) {
        const { Redlock } = load("@sesamecare-oss/redlock");
        return byAcquire(new Redlock(connections(context), quickly));
      },
    },
    {
      name: "redlock@4",
      measurements: all,
      async open(context) {
        const Redlock = load("redlock-4");
        const redlock = new Redlock(connections(context), quickly);
        return {
          request: async (name, run) => {
            const lock = await redlock.lock(name, ttlMs);
            await run();
            await lock.unlock();
          },
        };
      },
    },
    {
      name: "redis-semaphore",
      measurements: all,
      async open(context) {
        const { RedlockMutex } = load("redis-semaphore");
        const clients = connections(context);
        const options = { lockTimeout: ttlMs, acquireTimeout: 60_000, refreshInterval: 0, retryInterval: 10 };
        return {
          request: async (name, run) => {
            const mutex = new RedlockMutex(clients, name, options);
            await mutex.acquire();
            await run();
            await mutex.release();
          },
        };
      },
    },
    {
      name: "redlock-universal",
      measurements: all,
      async open(context) {
        const { createRedlock, IoredisAdapter } = await import("redlock-universal");
        const adapters = connections(context).map((client) => new IoredisAdapter(client));
        return {
          request: async (name, run) => {
            const lock = createRedlock({
              adapters,
              key: name,
              ttl: ttlMs,
              retryAttempts: 10_000,
              retryDelay: 10,
            });
            const handle = await lock.acquire();
            await run();
            await lock.release(handle);
          },
        };
      },
    },
  ],

  ratios: {
    ...ratiosOf("holdfast", ""),
    ...ratiosOf("holdfast, with tokens", "_fenced"),
    least_batch_pairs_256_vs_best_peer: { fullOnly: true, ...ratio("least-batch", "pairs_256", peers) },
    least_batch_cpu_per_pair_256_vs_best_peer: {
      fullOnly: true,
      ...ratio("least-batch", "cpu_us_per_pair_256", peers),
    },
    // The other two do not come to an end.
    drain_4x8_vs_best_peer: ratio("holdfast", "drain_ms_4x8", [
      "redlock@4",
      "redis-semaphore",
      "redlock-universal",
    ]),
  },

  async setup() {
    const started = await Promise.all(Array.from({ length: nodes }, () => startRedis()));
    running = started.map(({ server }) => server);
    return { ports: started.map(({ port }) => port) };
  },

  async teardown() {
    await Promise.all(running.map((server) => server.remove()));
  },
};

/** @type {{ remove(): Promise<void> }[]} */
let running = [];

/** @param {string} name @param {boolean} fencing @returns {Contender<Subject, Context>} */
function holdfast(name, fencing) {
  return {
    name,
    measurements: fencing ? ["pairs"] : all,
    fullOnly: fencing ? ["drain"] : [],
    async open(context) {
      const built = (/** @type {string} */ path) => new URL(`../../dist/${path}`, import.meta.url).href;
      const [{ connect }, { redlockBackend }] = await Promise.all([
        import(built("index.js")),
        import(built("backends/redlock/index.js")),
      ]);
      const clients = connections(context, {
        enableOfflineQueue: false,
        autoResendUnfulfilledCommands: false,
      });
      // The servers are fresh: they would be in quarantine.
      const backend = redlockBackend({ clients, fencing, quarantineMs: 0, deadlineMs: 2_000 });
      await backend.ready();
      const locks = await connect(backend, { ttl: ttlMs });
      // Without a token there is none to look at.
      return { request: (lock, run) => locks.request(lock, () => run()) };
    },
  };
}

/** What redlock 5 and its fork have in common. @param {any} redlock @returns {Subject} */
function byAcquire(redlock) {
  return {
    request: async (name, run) => {
      const lock = await redlock.acquire([name], ttlMs);
      await run();
      await lock.release();
    },
  };
}

/** @param {string} contender @param {string} suffix */
function ratiosOf(contender, suffix) {
  return {
    [`pair_p50_vs_floor${suffix}`]: ratio(contender, "pair_us", ["set-nx"]),
    [`pair_p50_vs_best_peer${suffix}`]: ratio(contender, "pair_us", peers),
    [`pairs_256_vs_best_peer${suffix}`]: ratio(contender, "pairs_256", peers),
    [`cpu_per_pair_256_vs_best_peer${suffix}`]: ratio(contender, "cpu_us_per_pair_256", peers),
  };
}

/** @param {string} contender @param {string} metric @param {readonly string[]} to */
function ratio(contender, metric, to) {
  return { of: { contender, metric }, to: to.map((peer) => ({ contender: peer, metric })) };
}
