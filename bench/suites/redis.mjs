/**
 * Locks on one Redis server: holdfast against the libraries of Node.js, and against the least that could do it on the same
 * client: plain SET NX PX for what is uncontended, a token in a list that BLPOP waits for where many want one lock.
 */
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { loopFleet, loopThenDrainFleet } from "../fleet.mjs";
import { leastBatch, leastQueue, leastScript } from "../redis-bounds.mjs";
import { pairMicrosAfter } from "../workloads.mjs";
import { ask, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { freePorts } from "../../scripts/lib/server-process.mjs";

/** @import { Budget, Contender, Job, Suite } from "../types.ts" */

/** @typedef {{ port: number, brokerPort: number }} Context brokerPort: where the broker of live-mutex listens */
/**
 * @typedef {object} Subject
 * @property {(name: string, run: (lock?: { token?: bigint }) => Promise<void>) => Promise<unknown>} request
 * @property {(name: string, run: () => Promise<void>) => Promise<unknown>} [inTurn] as request, by one of two clients and then by the other
 * @property {(name: string) => Promise<unknown>} [hold] acquires with a ttl of 3 s and renews it until the process ends
 */

const load = createRequire(import.meta.url);
const ttlMs = 10_000;
const heldTtlMs = 3_000;
/** How many pairs one after the other, and with 256 under way, until the code of all contenders is compiled: the same for each. */
const warmPairs = 3_000;
const warmPairs256 = 60_000;
const fleet = { processes: 4, waiters: 8, holdMs: 1 };
/** Whoever is measured besides in a full run, and those of them that try again as soon as they may. */
const otherPeers = [
  "redlock@5",
  "redlock@4",
  "redis-semaphore",
  "redlock-universal",
  "ioredis-lock",
  "live-mutex",
];
const quickOnes = [
  "redlock@5, fast",
  "redlock@5, 1 ms",
  "redlock@4, 1 ms",
  "verrou, 1 ms",
  "redlock-universal, 1 ms",
  "ioredis-lock, 1 ms",
];
const releaseIfMine =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/** A connection of ioredis, the same for all contenders that use it. */
function connection(/** @type {Context} */ { port }, options = {}) {
  const { Redis } = load("ioredis");
  return new Redis(port, "127.0.0.1", options);
}

/** @type {Suite<Subject, Context>} */
export const suite = {
  name: "redis",
  floor: "set-nx",
  quickRounds: 2,

  metrics: {
    pair_us: { unit: "µs", better: "lower" },
    pairs_256: { unit: "pairs/s", better: "higher" },
    cpu_us_per_pair_256: { unit: "µs", better: "lower" },
    handoff_other_per_s_4x8: { unit: "/s", better: "higher" },
    wire_commands_per_acquire_4x8: { unit: "commands", better: "lower" },
    drain_gap_us_4x8: { unit: "µs", better: "lower" },
    inversions_4x8: { unit: "inversions", better: "lower" },
    renew_cpu_percent_10000: { unit: "% of a core", better: "lower" },
    renew_commands_per_s_10000: { unit: "commands/s", better: "lower" },
    handoff_us_10: { unit: "µs", better: "lower" },
    handoff_us_10000: { unit: "µs", better: "lower" },
  },

  measurements: {
    pair: {
      run: async ({ request }, { measureMs }) => {
        return {
          pair_us: await pairMicrosAfter(warmPairs, () => request("pair", idle), measureMs),
        };
      },
    },
    pairs256: { run: (subject, budget) => throughputAfter(subject, budget, warmPairs256) },
    loop: {
      deadlineMs: 120_000,
      run: async (_subject, budget, job) => {
        const count = await wireCounter(job);
        const looped = await loopFleet(job, { ...fleet, ...loopShape(budget) });
        return loopValues(looped, await count());
      },
    },
    loopAndDrain: {
      deadlineMs: 120_000,
      run: async (_subject, budget, job) => {
        const count = await wireCounter(job);
        let sent = 0;
        const { looped, drained } = await loopThenDrainFleet(job, {
          ...fleet,
          ...loopShape(budget),
          drains: 10,
          between: async () => {
            sent = await count();
          },
        });
        return { ...loopValues(looped, sent), drain_gap_us_4x8: drained.gapUs };
      },
    },
    renew: { run: measureRenewals },
    handoff10: {
      run: async (subject, budget) => ({ handoff_us_10: await handOverMicros(subject, 10, budget) }),
    },
    handoff10000: {
      run: async (subject, budget) => ({ handoff_us_10000: await handOverMicros(subject, 10_000, budget) }),
    },
  },

  contenders: [
    {
      name: "holdfast",
      measurements: ["pair", "pairs256", "loopAndDrain", "renew", "handoff10", "handoff10000"],
      onceInQuick: ["loopAndDrain", "renew", "handoff10", "handoff10000"],
      async open(context) {
        const built = (/** @type {string} */ path) => new URL(`../../dist/${path}`, import.meta.url).href;
        const [{ connect }, { redisBackend }] = await Promise.all([
          import(built("index.js")),
          import(built("backends/redis/index.js")),
        ]);
        const open = async () => {
          const safe = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false };
          const client = connection(context, safe);
          const locks = await connect(redisBackend({ client, health: "ignore" }), { ttl: ttlMs });
          await locks.request("warm", idle);
          return locks;
        };
        const locks = await open();
        const both = [locks];
        let turns = 0;
        return {
          request: (name, run) => locks.request(name, run),
          inTurn: async (name, run) => {
            if (both.length < 2) both.push(await open());
            return both[turns++ % 2].request(name, run);
          },
          hold: (name) => locks.acquire(name, { ttl: heldTtlMs }),
        };
      },
    },
    {
      name: "set-nx",
      measurements: ["pair", "pairs256"],
      async open(context) {
        const client = connection(context);
        const digest = await client.script("LOAD", releaseIfMine);
        const taking = async (/** @type {string} */ name) => {
          const value = randomBytes(16).toString("hex");
          if ((await client.set(name, value, "PX", ttlMs, "NX")) === null) throw new Error("busy");
          return value;
        };
        return {
          request: async (name, run) => {
            const value = await taking(name);
            await run();
            await client.evalsha(digest, 1, name, value);
          },
        };
      },
    },
    {
      name: "least-script",
      measurements: [],
      fullOnly: ["pair"],
      open: (context) => leastScript(connection(context), ttlMs),
    },
    {
      name: "least-batch",
      measurements: [],
      fullOnly: ["pairs256", "renew"],
      open: (context) => leastBatch(connection(context), ttlMs, heldTtlMs),
    },
    {
      name: "least-queue",
      measurements: [],
      fullOnly: ["loopAndDrain"],
      open: (context) => leastQueue(connection(context)),
    },
    {
      name: "blpop",
      measurements: ["loopAndDrain"],
      onceInQuick: ["loopAndDrain"],
      async open(context) {
        const giver = connection(context);
        /** @type {import("ioredis").Redis[]} */
        const idleOnes = [];
        const made = new Set();
        return {
          // One connection for each waiter: BLPOP blocks it.
          request: async (name, run) => {
            // The list stays: under the name alone it would be in the way of whoever wants that lock next.
            const list = `blpop:${name}`;
            if (!made.has(name)) {
              made.add(name);
              // For longer than any run takes: a second token would let two in.
              if ((await giver.set(`made:${name}`, "1", "EX", 86_400, "NX")) !== null)
                await giver.rpush(list, "token");
            }
            const own = idleOnes.pop() ?? connection(context);
            await own.blpop(list, 0);
            await run();
            await giver.rpush(list, "token");
            idleOnes.push(own);
          },
        };
      },
    },
    ...["default", "fast", "1 ms"].map((retry) => redlock5(retry)),
    ...["default", "1 ms"].map((retry) => redlock4(retry)),
    ...["default", "1 ms"].map((retry) => redisSemaphore(retry)),
    ...[10, 1].flatMap((retryMs) => [verrou(retryMs), redlockUniversal(retryMs), ioredisLock(retryMs)]),
    {
      name: "live-mutex",
      measurements: ["loopAndDrain"],
      onceInQuick: ["loopAndDrain"],
      fullOnly: ["pair", "pairs256"],
      async open({ brokerPort }) {
        const { Client } = load("live-mutex");
        const client = new Client({
          port: brokerPort,
          host: "127.0.0.1",
          ttl: ttlMs,
          lockRequestTimeout: 60_000,
        });
        await client.ensure();
        return {
          request: async (name, run) => {
            const { id } = await client.acquire(name);
            await run();
            await client.release(name, id);
          },
        };
      },
    },
  ],

  ratios: {
    pair_p50_vs_floor: ratio("pair_us", ["set-nx"]),
    least_script_pair_p50_vs_floor: bound("least-script", "pair_us", "set-nx"),
    pairs_256_vs_floor: ratio("pairs_256", ["set-nx"]),
    pairs_256_vs_best_peer: ratio("pairs_256", ["verrou"], otherPeers),
    least_batch_pairs_256_vs_best_peer: bound("least-batch", "pairs_256", "verrou"),
    cpu_per_pair_256_vs_floor: ratio("cpu_us_per_pair_256", ["set-nx"]),
    handoff_other_per_s_4x8_vs_floor: ratio("handoff_other_per_s_4x8", ["blpop"]),
    handoff_other_per_s_4x8_vs_best_redis_peer: ratio(
      "handoff_other_per_s_4x8",
      ["redis-semaphore, 1 ms"],
      [...otherPeers, "verrou", ...quickOnes].filter((name) => name !== "live-mutex"),
    ),
    handoff_other_per_s_4x8_vs_live_mutex: ratio("handoff_other_per_s_4x8", ["live-mutex"]),
    drain_gap_p50_4x8_vs_floor: ratio("drain_gap_us_4x8", ["blpop"]),
    least_queue_handoff_other_per_s_4x8_vs_floor: bound("least-queue", "handoff_other_per_s_4x8", "blpop"),
    least_queue_drain_gap_p50_4x8_vs_floor: bound("least-queue", "drain_gap_us_4x8", "blpop"),
    wire_commands_per_contended_acquire: ratio("wire_commands_per_acquire_4x8", []),
    inversions_4x8: ratio("inversions_4x8", []),
    renew_cpu_10000_vs_best_peer: ratio("renew_cpu_percent_10000", ["redis-semaphore"], ["redlock@5"]),
    least_batch_renew_cpu_10000_vs_best_peer: bound(
      "least-batch",
      "renew_cpu_percent_10000",
      "redis-semaphore",
    ),
    renew_commands_per_s_10000: ratio("renew_commands_per_s_10000", []),
    handoff_10000_waiters_vs_10: {
      of: { contender: "holdfast", metric: "handoff_us_10000" },
      to: [{ contender: "holdfast", metric: "handoff_us_10" }],
    },
  },

  async setup() {
    const { server, port } = await startRedis();
    running = server;
    const { Broker } = load("live-mutex");
    const [brokerPort = 0] = await freePorts(1);
    const started = new Broker({ port: brokerPort, host: "127.0.0.1" });
    started.emitter.on("warning", () => {});
    broker = started;
    await started.ensure();
    return { port, brokerPort };
  },

  async teardown() {
    await running?.remove();
    broker?.close(() => {});
  },
};

/** @type {{ remove(): Promise<void> } | undefined} */
let running;
/** @type {{ ensure(): Promise<unknown>, close(done: () => void): void } | undefined} */
let broker;

async function idle() {}

/** To the best of these peers, and in a full run of more. @param {string} metric @param {readonly string[]} peers @param {readonly string[]} more */
function ratio(metric, peers, more = []) {
  const points = (/** @type {readonly string[]} */ names) =>
    names.map((contender) => ({ contender, metric }));
  return { of: { contender: "holdfast", metric }, to: points(peers), alsoInFull: points(more) };
}

/** What a bound reaches, in full runs. @param {string} contender @param {string} metric @param {string} peer */
function bound(contender, metric, peer) {
  return { fullOnly: true, of: { contender, metric }, to: [{ contender: peer, metric }] };
}

/** redlock 5: its own retry settings, 10 ms, or as fast as it may. @param {string} retry @returns {Contender<Subject, Context>} */
function redlock5(retry) {
  const settings = {
    default: { retryCount: 1_000 },
    fast: { retryCount: 100_000, retryDelay: 10, retryJitter: 5 },
    "1 ms": { retryCount: 1_000_000, retryDelay: 1, retryJitter: 1 },
  }[retry];
  const quick = retry !== "default";
  return {
    name: retry === "default" ? "redlock@5" : `redlock@5, ${retry}`,
    measurements: [],
    fullOnly: quick ? ["loop"] : ["pair", "pairs256", "loop", "renew"],
    async open(context) {
      const { default: Redlock } = load("redlock-5");
      const redlock = new Redlock([connection(context)], settings);
      return {
        request: async (name, run) => {
          const lock = await redlock.acquire([name], ttlMs);
          await run();
          await lock.release();
        },
        hold: (name) =>
          new Promise((resolve) => {
            void redlock.using([name], heldTtlMs, () => {
              resolve(undefined);
              return new Promise(() => {});
            });
          }),
      };
    },
  };
}

/** redlock 4: its own retry setting, or as fast as it may. @param {string} retry @returns {Contender<Subject, Context>} */
function redlock4(retry) {
  const quick = retry !== "default";
  return {
    name: quick ? `redlock@4, ${retry}` : "redlock@4",
    measurements: [],
    fullOnly: quick ? ["loop"] : ["pair", "pairs256", "loop"],
    async open(context) {
      const Redlock = load("redlock-4");
      const settings = quick
        ? { retryCount: 1_000_000, retryDelay: 1, retryJitter: 1 }
        : { retryCount: 100_000 };
      const redlock = new Redlock([connection(context)], settings);
      return {
        request: async (name, run) => {
          const lock = await redlock.lock(name, ttlMs);
          await run();
          await lock.unlock();
        },
      };
    },
  };
}

/** @param {string} name @param {number} retryMs 10, or as fast as it may @param {Contender<Subject, Context>["open"]} open @returns {Contender<Subject, Context>} */
function retrying(name, retryMs, open) {
  const quick = retryMs < 10;
  return {
    name: quick ? `${name}, ${retryMs} ms` : name,
    measurements: [],
    fullOnly: quick ? ["loop"] : ["pair", "pairs256", "loop"],
    open,
  };
}

/** @param {number} retryMs @returns {Contender<Subject, Context>} */
function verrou(retryMs) {
  const contender = retrying("verrou", retryMs, async (context) => {
    const { LockFactory } = await import("@verrou/core");
    const { redisStore } = await import("@verrou/core/drivers/redis");
    const store = redisStore({ connection: connection(context) }).factory();
    const locks = new LockFactory(store, { retry: { attempts: Number.POSITIVE_INFINITY, delay: retryMs } });
    return {
      request: async (name, run) => {
        const lock = locks.createLock(name, ttlMs);
        await lock.acquire();
        await run();
        await lock.release();
      },
    };
  });
  if (retryMs < 10) return contender;
  // In a quick run it stands for all peers.
  return { ...contender, measurements: ["pairs256"], onceInQuick: ["pairs256"], fullOnly: ["pair", "loop"] };
}

/** @param {number} retryMs @returns {Contender<Subject, Context>} */
function redlockUniversal(retryMs) {
  return retrying("redlock-universal", retryMs, async (context) => {
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const adapter = new IoredisAdapter(connection(context));
    return {
      request: async (name, run) => {
        const options = { adapter, key: name, ttl: ttlMs, retryAttempts: 100_000, retryDelay: retryMs };
        const lock = createLock({ ...options, performance: "lean" });
        const handle = await lock.acquire();
        await run();
        await lock.release(handle);
      },
    };
  });
}

/** @param {number} retryMs @returns {Contender<Subject, Context>} */
function ioredisLock(retryMs) {
  return retrying("ioredis-lock", retryMs, async (context) => {
    const { createLock } = await import("@microfleet/ioredis-lock");
    const client = connection(context);
    return {
      request: async (name, run) => {
        const lock = createLock(client, { timeout: ttlMs, retries: 1_000_000, delay: retryMs, jitter: 1 });
        await lock.acquire(name);
        await run();
        await lock.release();
      },
    };
  });
}

/** redis-semaphore: its own retry setting, or as fast as it may. @param {string} retry @returns {Contender<Subject, Context>} */
function redisSemaphore(retry) {
  const quick = retry !== "default";
  return {
    name: quick ? `redis-semaphore, ${retry}` : "redis-semaphore",
    measurements: quick ? ["loop"] : ["renew"],
    onceInQuick: ["loop", "renew"],
    fullOnly: quick ? [] : ["pair", "pairs256", "loop"],
    async open(context) {
      const { Mutex } = load("redis-semaphore");
      const client = connection(context);
      const options = {
        lockTimeout: ttlMs,
        acquireTimeout: 60_000,
        refreshInterval: 0,
        ...(quick ? { retryInterval: 1 } : {}),
      };
      return {
        request: async (name, run) => {
          const mutex = new Mutex(client, name, options);
          await mutex.acquire();
          await run();
          await mutex.release();
        },
        hold: (name) =>
          new Mutex(client, name, { lockTimeout: heldTtlMs, refreshInterval: heldTtlMs / 2 }).acquire(),
      };
    },
  };
}

/** @param {Job} job @returns {Context} */
function contextOf({ context }) {
  if (typeof context !== "object" || context === null || !("port" in context)) throw new Error("no context");
  const { port } = context;
  return { port: Number(port), brokerPort: 0 };
}

/**
 * 256 pairs under way all the time, each on a name of its own.
 * @param {Pick<Subject, "request">} subject
 * @param {Budget} budget
 * @param {number} warm so many pairs come first
 */
export async function throughputAfter({ request }, { measureMs }, warm) {
  const run = async (/** @type {(pairs: number) => boolean} */ goesOn) => {
    let pairs = 0;
    const loop = async (/** @type {number} */ index) => {
      while (goesOn(pairs)) {
        await request(`pair:${index}`, idle);
        pairs += 1;
      }
    };
    const cpu = process.cpuUsage();
    const start = performance.now();
    await Promise.all(Array.from({ length: 256 }, (_, index) => loop(index)));
    const { user, system } = process.cpuUsage(cpu);
    const elapsedMs = performance.now() - start;
    return { pairs_256: (pairs * 1000) / elapsedMs, cpu_us_per_pair_256: (user + system) / pairs };
  };
  await run((pairs) => pairs < warm);
  const until = performance.now() + 2 * measureMs;
  return run(() => performance.now() < until);
}

/** A loop without a warm-up of its own: that would send commands that no acquisition is counted for. @param {Budget} budget */
function loopShape({ warmUpMs, measureMs }) {
  return { warmUpMs: 1, measureMs: warmUpMs + 2 * measureMs };
}

/** @param {{ toOthersPerSecond: number, acquisitions: number, inversions: number }} looped @param {number} sent commands */
function loopValues({ toOthersPerSecond, acquisitions, inversions }, sent) {
  return {
    handoff_other_per_s_4x8: toOthersPerSecond,
    wire_commands_per_acquire_4x8: sent / acquisitions,
    inversions_4x8: inversions,
  };
}

/** Gives a function that says how many commands were sent since. @param {Job} job */
async function wireCounter(job) {
  const before = await wireCommands(job);
  return async () => (await wireCommands(job)) - before;
}

/** Commands that a contender has sent so far. Those inside of scripts are counted by the server, too, but not here. */
async function wireCommands(/** @type {Job} */ job) {
  const stats = await ask(contextOf(job).port, "info", "commandstats");
  const plain = /^(set-nx|blpop|redis-semaphore|verrou|redlock-universal|ioredis-lock)/.test(job.contender)
    ? "set|blpop|rpush|"
    : "";
  const counted = new RegExp(`^cmdstat_(?:${plain}eval|evalsha|wait):calls=(\\d+)`, "gm");
  return [...stats.matchAll(counted)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** 10,000 locks that are held and renewed: what the process and the server do about it. @param {Subject} subject @param {Budget} _budget @param {Job} job */
async function measureRenewals({ hold }, _budget, job) {
  if (hold === undefined) throw new Error("this contender cannot hold");
  const locks = 10_000;
  for (let from = 0; from < locks; from += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, index) => hold(`held:${from + index}`)));
  }
  // By then each has been renewed once at least: the code of all contenders is compiled, as for pairs.
  await pause(heldTtlMs);
  const before = await wireCommands(job);
  const cpu = process.cpuUsage();
  const start = performance.now();
  await pause(heldTtlMs);
  const { user, system } = process.cpuUsage(cpu);
  const elapsedMs = performance.now() - start;
  return {
    renew_cpu_percent_10000: (user + system) / 10 / elapsedMs,
    renew_commands_per_s_10000: (((await wireCommands(job)) - before) * 1000) / elapsedMs,
  };
}

/** So many hand-overs come first, whatever is measured: the code is compiled alike. */
const warmHandOvers = 500;
const shortQueue = 10;

/** Microseconds per hand-over from one client to another at the head of a queue this long. @param {Subject} subject @param {number} waiters @param {Budget} budget */
async function handOverMicros(subject, waiters, { measureMs }) {
  for (let done = 0; done < warmHandOvers; done += shortQueue)
    await drainOnce(subject, shortQueue, measureMs);
  let [drainMs, handOvers] = [0, 0];
  while (handOvers < warmHandOvers) {
    const drained = await drainOnce(subject, waiters, measureMs);
    drainMs += drained.elapsedMs;
    handOvers += drained.handOvers;
  }
  return (drainMs * 1000) / handOvers;
}

let queues = 0;

/** Fills a queue and drains it, for so long at most. @param {Subject} subject @param {number} waiters @param {number} mostMs */
async function drainOnce({ request, inTurn = request }, waiters, mostMs) {
  const name = `queue:${queues++}`;
  /** @type {number[]} */
  const entered = [];
  let leave = () => {};
  const held = new Promise((resolve) => {
    void inTurn(name, () => {
      resolve(undefined);
      return new Promise((left) => (leave = () => left(undefined)));
    });
  });
  await held;
  const elapsedMs = () => (entered.at(-1) ?? 0) - (entered[0] ?? 0);
  const drained = new Promise((resolve) => {
    const section = async () => {
      entered.push(performance.now());
      if (entered.length === waiters || elapsedMs() > mostMs) resolve(undefined);
    };
    void (async () => {
      for (let index = 0; index < waiters; index++) {
        inTurn(name, section).catch(() => {});
        if (index % 200 === 199) await pause(10);
      }
      // What was asked last stands in line by then.
      await pause(Math.min(500, 5 * waiters));
      leave();
    })();
  });
  await drained;
  return { elapsedMs: elapsedMs(), handOvers: entered.length - 1 };
}
