/** Locks on ZooKeeper: the backend against Curator's InterProcessMutex, and against the bare requests on the same client: create and delete, the floor, and with a list of the queue. */
import { makeFolder, removeFolder } from "../../scripts/lib/server-process.mjs";
import { askServer, startZooKeeper } from "../../scripts/lib/zookeeper-server.mjs";
import { compileBench, curatorLoop, curatorPair } from "../curator.mjs";
import { loopFleet } from "../fleet.mjs";
import { idle, pairMicrosAfter } from "../workloads.mjs";

/** @import { Budget, Job, Suite } from "../types.ts" */
/** @import { Request } from "../workloads.mjs" */

/** @typedef {import("../../src/backends/zookeeper/client/session.ts").ZooSession} ZooSession */
/** @typedef {Parameters<ZooSession["create"]>[0]} NewNode */

/** @typedef {{ port: number, folder: string }} Context the server, and where Curator's program is */

/**
 * @typedef {object} Subject
 * @property {Context} context
 * @property {Request | null} request null for Curator, which is measured in Java
 * @property {() => Promise<void>} close
 */

/** A request takes a millisecond or so, and Java gets faster for some seconds: all need longer than in memory. */
function stretched(/** @type {Budget} */ { measureMs }) {
  return measureMs < 500
    ? { warmUpMs: 1_000, warmPairs: 1_500, measureMs: 2 * measureMs }
    : { warmUpMs: 3_000, warmPairs: 3_000, measureMs: 6 * measureMs };
}

const holdMs = 1;
const shapes = { 1: { processes: 1, waiters: 16 }, 4: { processes: 4, waiters: 4 } };

/** @type {import("../../scripts/lib/zookeeper-server.mjs").ZooServer[]} */
let servers = [];

/** @type {Suite<Subject, Context>} */
export const suite = {
  name: "zookeeper",
  floor: "create-delete",
  quickRounds: 2,

  metrics: {
    pair_p50: { unit: "µs", better: "lower" },
    handoff_per_s_16: { unit: "/s", better: "higher" },
    handoff_gap_p50: { unit: "µs", better: "lower" },
    requests_per_contended_acquire: { unit: "", better: "lower" },
    handoff_per_s_4x4: { unit: "/s", better: "higher" },
    handoff_gap_p50_4x4: { unit: "µs", better: "lower" },
    requests_per_contended_acquire_4x4: { unit: "", better: "lower" },
  },

  measurements: {
    pair: {
      run: async ({ context, request }, budget) => {
        const { warmPairs, measureMs } = stretched(budget);
        const pairP50 =
          request === null
            ? await curatorPair(context.folder, hostsOf(context), stretched(budget))
            : await pairMicrosAfter(warmPairs, () => request("pair", idle), measureMs);
        return { pair_p50: pairP50 };
      },
    },
    handoff: {
      deadlineMs: 120_000,
      run: async (subject, budget, job) => {
        const { perSecond, gapUs, requests } = await handOver(subject, budget, job, shapes[1]);
        return {
          handoff_per_s_16: perSecond,
          handoff_gap_p50: gapUs,
          requests_per_contended_acquire: requests,
        };
      },
    },
    handoff4: {
      deadlineMs: 120_000,
      run: async (subject, budget, job) => {
        const { perSecond, gapUs, requests } = await handOver(subject, budget, job, shapes[4]);
        return {
          handoff_per_s_4x4: perSecond,
          handoff_gap_p50_4x4: gapUs,
          requests_per_contended_acquire_4x4: requests,
        };
      },
    },
  },

  contenders: [
    {
      name: "holdfast",
      measurements: ["pair", "handoff"],
      onceInQuick: ["handoff"],
      fullOnly: ["handoff4"],
      open: openHoldfast,
      close: (subject) => subject.close(),
    },
    {
      name: "create-delete",
      measurements: ["pair"],
      open: openBare,
      close: (subject) => subject.close(),
    },
    {
      name: "create-list-delete",
      measurements: [],
      fullOnly: ["pair"],
      open: openLeast,
      close: (subject) => subject.close(),
    },
    {
      name: "curator",
      measurements: ["pair", "handoff"],
      onceInQuick: ["handoff"],
      fullOnly: ["handoff4"],
      open: async (context) => ({ context, request: null, close: async () => {} }),
    },
  ],

  ratios: {
    pair_p50_vs_floor: ratio("pair_p50", "create-delete"),
    pair_p50_vs_least: { ...ratio("pair_p50", "create-list-delete"), fullOnly: true },
    least_pair_p50_vs_floor: {
      of: { contender: "create-list-delete", metric: "pair_p50" },
      to: [{ contender: "create-delete", metric: "pair_p50" }],
      fullOnly: true,
    },
    pair_p50_vs_curator: ratio("pair_p50", "curator"),
    handoff_per_s_16_vs_curator: ratio("handoff_per_s_16", "curator"),
    handoff_gap_p50_vs_curator: ratio("handoff_gap_p50", "curator"),
    requests_per_contended_acquire: {
      of: { contender: "holdfast", metric: "requests_per_contended_acquire" },
      to: [],
    },
    requests_per_contended_acquire_vs_curator: ratio("requests_per_contended_acquire", "curator"),
    handoff_per_s_4x4_vs_curator: { ...ratio("handoff_per_s_4x4", "curator"), fullOnly: true },
    handoff_gap_p50_4x4_vs_curator: { ...ratio("handoff_gap_p50_4x4", "curator"), fullOnly: true },
    requests_per_contended_acquire_4x4_vs_curator: {
      ...ratio("requests_per_contended_acquire_4x4", "curator"),
      fullOnly: true,
    },
  },

  async setup() {
    servers = await startZooKeeper(1, {
      tickMs: 2_000,
      maxSessionMs: 40_000,
      containerMs: 60_000,
      durable: true,
    });
    const folder = await makeFolder("curator");
    await compileBench(folder);
    return { port: servers[0]?.port ?? 0, folder };
  },

  async teardown({ folder }) {
    await Promise.all([...servers.map((server) => server.remove()), removeFolder(folder)]);
  },
};

/**
 * @param {string} metric
 * @param {string} contender
 */
function ratio(metric, contender) {
  return { of: { contender: "holdfast", metric }, to: [{ contender, metric }] };
}

function hostsOf(/** @type {Context} */ { port }) {
  return `127.0.0.1:${port}`;
}

/** @param {Context} context @returns {Promise<Subject>} */
async function openHoldfast(context) {
  // Not literals: the type checker runs before the package is built.
  const { connect } = await import(built("index.js"));
  const { zookeeperBackend } = await import(built("backends/zookeeper/index.js"));
  const locks = await connect(zookeeperBackend({ hosts: hostsOf(context) }));
  return { context, request: (name, run) => locks.request(name, run), close: () => locks.close() };
}

/** Not a lock: what it costs at least to make a node and to delete it again. */
function openBare(/** @type {Context} */ context) {
  return openRaw(context, "/bare", (session, node) => session.create(node));
}

/** The recipe of ZooKeeper's own pages, and nothing around it: make a node, list the queue right behind it, delete. */
function openLeast(/** @type {Context} */ context) {
  return openRaw(context, "/least", async (session, node) => {
    const [made, { children }] = await Promise.all([session.create(node), session.getChildren("/least")]);
    if (children.length !== 1) throw new Error("somebody is ahead");
    return made;
  });
}

/**
 * @param {Context} context
 * @param {string} parent
 * @param {(session: ZooSession, node: NewNode) => Promise<{ path: string }>} enter
 * @returns {Promise<Subject>}
 */
async function openRaw(context, parent, enter) {
  // Not literals: the type checker runs before the package is built.
  const { parseEnsemble, ZooSession } = await import(built("backends/zookeeper/client/index.js"));
  const { systemClock: clock } = await import(built("core/clock.js"));
  const ensemble = parseEnsemble(hostsOf(context));
  const pace = { sessionMs: 30_000, pingShare: 1 / 12, reportMs: 1_000, reachMs: 5_000 };
  /** @type {ZooSession} */
  const session = new ZooSession({ ...ensemble, ...pace, clock, random: Math.random });
  const acl = [{ perms: 31, scheme: "world", id: "anyone" }];
  const data = Buffer.alloc(0);
  await session.create({ path: parent, data, acl, mode: "persistent" }).catch(() => {});
  return {
    context,
    request: async (_name, run) => {
      const { path } = await enter(session, {
        path: `${parent}/n-`,
        data,
        acl,
        mode: "ephemeral-sequential",
      });
      await run();
      await session.delete(path);
    },
    close: () => session.close(),
  };
}

function built(/** @type {string} */ path) {
  return new URL(`../../dist/${path}`, import.meta.url).href;
}

/**
 * @param {Subject} subject
 * @param {Budget} budget
 * @param {Job} job
 * @param {{ processes: number, waiters: number }} shape
 */
async function handOver({ context, request }, budget, job, shape) {
  const { warmUpMs, measureMs } = stretched(budget);
  let requests = 0;
  if (request === null) {
    const found = await curatorLoop(
      context.folder,
      hostsOf(context),
      { ...shape, holdMs, warmUpMs, measureMs },
      async (measure) => {
        const before = await received(context);
        const turns = await measure();
        requests = ((await received(context)) - before) / turns;
      },
    );
    return { ...found, requests };
  }
  const { perSecond, gapUs } = await loopFleet(job, { ...shape, holdMs, warmUpMs, measureMs });
  // Counted in a run of its own, so that no warm-up is in it.
  const before = await received(context);
  const { acquisitions } = await loopFleet(job, { ...shape, holdMs, warmUpMs: 0, measureMs });
  requests = ((await received(context)) - before) / acquisitions;
  return { perSecond, gapUs, requests };
}

/** How many requests the server has got. */
async function received(/** @type {Context} */ { port }) {
  return Number(/^Received: (\d+)/m.exec(await askServer(port, "srvr"))?.[1]);
}
