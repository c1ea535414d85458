/** Locks in a SQL database, for the suites of PostgreSQL and MySQL: what is measured and compared; how each contender locks is left to them. */
import { setTimeout as pause } from "node:timers/promises";
import { drainFleet, loopFleet } from "./fleet.mjs";
import { pairMicrosAfter, pairsPerSecond } from "./workloads.mjs";

/** @import { Contender, Measurement, Metric, Ratio } from "./types.ts" */

/**
 * @typedef {object} Subject
 * @property {(name: string) => Promise<void>} pair takes a free lock and gives it back
 * @property {(name: string, run: (lock?: { token?: bigint }) => Promise<void>) => Promise<unknown>} [request] the callback form, which waits
 * @property {() => Promise<number>} [connections] how many connections to the database there are
 */

const fleet = { processes: 2, waiters: 8, holdMs: 1 };
const waiters = 100;
const warmPairs = { full: 3_000, quick: 1_000 };

/** @type {Readonly<Record<string, Metric>>} */
export const metrics = {
  pair_us: { unit: "µs", better: "lower" },
  pairs_16: { unit: "pairs/s", better: "higher" },
  handoff_gap_us: { unit: "µs", better: "lower" },
  handoff_other_per_s: { unit: "1/s", better: "higher" },
  connections_with_100_waiters: { unit: "connections", better: "lower" },
};

/** @type {Readonly<Record<string, Measurement<Subject>>>} */
export const measurements = {
  pair: {
    run: async ({ pair }, { measureMs }) => {
      const warm = measureMs < 500 ? warmPairs.quick : warmPairs.full;
      return { pair_us: await pairMicrosAfter(warm, () => pair("pair"), 2 * measureMs) };
    },
  },
  pairs16: {
    run: async ({ pair }, budget) => {
      let looper = 0;
      const own = () => pair(`pair:${looper++ % 16}`);
      return { pairs_16: await pairsPerSecond(own, { loopers: 16, pairsPerLoop: 20, budget }) };
    },
  },
  gap: {
    deadlineMs: 120_000,
    run: async (_subject, { measureMs }, job) => {
      const { gapUs } = await drainFleet(job, { ...fleet, drains: measureMs < 500 ? 1 : 3 });
      return { handoff_gap_us: gapUs };
    },
  },
  handoffs: {
    deadlineMs: 120_000,
    run: async (_subject, { warmUpMs, measureMs }, job) => {
      const found = await loopFleet(job, { ...fleet, warmUpMs, measureMs: 2 * measureMs });
      return { handoff_other_per_s: found.toOthersPerSecond };
    },
  },
  connections: {
    run: async ({ request, connections }) => {
      if (request === undefined || connections === undefined) throw new Error("it does not wait");
      let leave = () => {};
      const held = request("job", () => new Promise((resolve) => (leave = () => resolve(undefined))));
      const waiting = Array.from({ length: waiters }, () => request("job", async () => {}));
      await pause(700);
      const count = await connections();
      leave();
      await Promise.all([held, ...waiting]);
      return { connections_with_100_waiters: count };
    },
  },
};

/** @type {Readonly<Record<string, Ratio>>} */
export const ratios = {
  pair_p50_vs_floor: ratio("pair_us", "floor"),
  pair_p50_vs_verrou: ratio("pair_us", "verrou"),
  pairs_16_vs_verrou: ratio("pairs_16", "verrou"),
  handoff_gap_p50_vs_advisory: ratio("handoff_gap_us", "advisory"),
  handoff_other_per_s_vs_verrou: ratio("handoff_other_per_s", "verrou"),
  // No ratio: one connection is the least that there is.
  connections_with_100_waiters: {
    of: { contender: "holdfast", metric: "connections_with_100_waiters" },
    to: [],
  },
};

/**
 * @param {string} metric
 * @param {string} peer
 * @returns {Ratio}
 */
function ratio(metric, peer) {
  return { of: { contender: "holdfast", metric }, to: [{ contender: peer, metric }] };
}

/**
 * The package as it was built, on a URL.
 *
 * @template {{ url: string }} Context
 * @param {(url: string) => Promise<number>} countConnections
 * @returns {Contender<Subject, Context>}
 */
export function holdfast(countConnections) {
  return {
    name: "holdfast",
    measurements: ["pair", "pairs16", "gap", "handoffs", "connections"],
    onceInQuick: ["gap", "handoffs", "connections"],
    async open({ url }) {
      // Not a literal: the type checker runs before the package is built.
      const built = new URL("../dist/index.js", import.meta.url).href;
      const { connect } = await import(built);
      const locks = await connect(url);
      return {
        request: (name, run) => locks.request(name, run),
        pair: async (name) => {
          const lock = await locks.acquire(name);
          await lock.release();
        },
        connections: () => countConnections(url),
      };
    },
  };
}

/**
 * @verrou/core on knex, as its page shows it.
 *
 * @template {{ url: string }} Context
 * @param {string} client knex's name of the driver
 * @returns {Contender<Subject, Context>}
 */
export function verrou(client) {
  return {
    name: "verrou",
    measurements: ["pair", "pairs16", "handoffs"],
    onceInQuick: ["handoffs"],
    async open({ url }) {
      const [{ Verrou }, { knexStore }, { default: knex }] = await Promise.all([
        import("@verrou/core"),
        import("@verrou/core/drivers/knex"),
        import("knex"),
      ]);
      const connection = knex({ client, connection: url, pool: { min: 0, max: 10 } });
      const locks = new Verrou({
        default: "db",
        stores: { db: { driver: knexStore({ connection, tableName: "verrou" }) } },
      });
      return {
        request: async (name, run) => {
          const lock = locks.createLock(name);
          await unlessDeadlocked(() => lock.acquire());
          await run();
          await unlessDeadlocked(() => lock.release());
        },
        pair: async (name) => {
          const lock = locks.createLock(name);
          await lock.acquire();
          await lock.release();
        },
      };
    },
  };
}

/** Tries again where the database ended it for a deadlock, as whoever uses it has to. @param {() => Promise<unknown>} call */
async function unlessDeadlocked(call) {
  for (;;) {
    try {
      await call();
      return;
    } catch (error) {
      if (!/deadlock/i.test(String(error))) throw error;
    }
  }
}
