/**
 * Locks on etcd, one node and three: the etcd backend against etcd's own lock service (v3lock), the Lock of etcd3, etcdctl
 * lock, and a bare transaction and delete on the same client, the floor.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { startEtcd } from "../../scripts/lib/etcd-server.mjs";
import { assertExclusive, idle, warmUp } from "../workloads.mjs";

/** @import { Budget, Suite, Values } from "../types.ts" */
/** @import { Request } from "../workloads.mjs" */

/** @typedef {{ one: string, three: readonly string[] }} Context */

/**
 * @typedef {object} Locker
 * @property {Request} request
 * @property {() => Promise<void>} close
 */

/**
 * @typedef {object} Subject
 * @property {(endpoints: readonly string[]) => Promise<Locker>} connect
 * @property {Context} context
 */

const loopers = 256;
const waiters = 16;
const ttlSeconds = 30;
/**
 * Calls to etcd take milliseconds: warming up and measuring need longer than in memory, where there is time for it. Pairs that come one
 * after the other are warmed by their number, so that as much code is compiled for each contender.
 */
function stretched(/** @type {Budget} */ { warmUpMs, measureMs }) {
  const quick = measureMs < 500;
  const stretch = quick ? 2 : 6;
  return {
    warmUpMs: stretch * warmUpMs,
    warmPairs: quick ? 400 : 3_000,
    measureMs: stretch * measureMs,
  };
}

/** @type {import("../../scripts/lib/etcd-server.mjs").EtcdNode[]} */
let nodes = [];

/** @type {Suite<Subject, Context>} */
export const suite = {
  name: "etcd",
  floor: "txn-delete",
  quickRounds: 2,

  metrics: {
    pair_p50: { unit: "µs", better: "lower" },
    proposals_per_pair: { unit: "", better: "lower" },
    pairs_256: { unit: "pairs/s", better: "higher" },
    cpu_per_pair: { unit: "µs", better: "lower" },
    handoff_per_s_16: { unit: "/s", better: "higher" },
    handoff_gap_p50: { unit: "µs", better: "lower" },
    handoff_gap_p99: { unit: "µs", better: "lower" },
    proposals_per_contended_acquire: { unit: "", better: "lower" },
    pair_p50_3n: { unit: "µs", better: "lower" },
    handoff_per_s_16_3n: { unit: "/s", better: "higher" },
  },

  measurements: {
    pair: {
      run: (subject, budget) =>
        withLocker(subject, [subject.context.one], async ({ request }) => {
          await warmUp(stretched(budget).warmPairs, () => request("pair", idle));
          const { p50, count, proposals } = await pairs(request, budget, subject.context.one);
          return { pair_p50: p50, proposals_per_pair: proposals / count };
        }),
    },
    pairs256: {
      run: (subject, budget) =>
        withLocker(subject, [subject.context.one], async ({ request }) => {
          const { perSecond, cpuMicros } = await manyPairs(request, budget);
          return { pairs_256: perSecond, cpu_per_pair: cpuMicros };
        }),
    },
    handoff: {
      run: (subject, budget) =>
        withLocker(subject, [subject.context.one], async ({ request }) => {
          await assertExclusive(request);
          const { perSecond, p50, p99, proposals } = await handOver(request, budget, subject.context.one);
          return {
            handoff_per_s_16: perSecond,
            handoff_gap_p50: p50,
            handoff_gap_p99: p99,
            proposals_per_contended_acquire: proposals,
          };
        }),
    },
    pair3: {
      run: async (subject, budget) => {
        const { one, three } = subject.context;
        // What is compiled on one node is so on three, and that takes a third of the time.
        await withLocker(subject, [one], async ({ request }) => {
          await warmUp(stretched(budget).warmPairs, () => request("pair", idle));
          return {};
        });
        return withLocker(subject, three, async ({ request }) => {
          const { p50 } = await pairs(request, budget, one);
          return { pair_p50_3n: p50 };
        });
      },
    },
    handoff3: {
      run: (subject, budget) =>
        withLocker(subject, subject.context.three, async ({ request }) => {
          const { perSecond } = await handOver(request, budget, subject.context.one);
          return { handoff_per_s_16_3n: perSecond };
        }),
    },
    processes: {
      run: async ({ context }) => fromShells(context.one),
    },
  },

  contenders: [
    {
      name: "holdfast",
      measurements: ["pair", "pairs256", "handoff"],
      onceInQuick: ["pairs256", "handoff"],
      fullOnly: ["pair3", "handoff3"],
      open: async (context) => ({ context, connect: connectHoldfast }),
    },
    {
      name: "txn-delete",
      measurements: ["pair", "pairs256"],
      onceInQuick: ["pairs256"],
      fullOnly: ["pair3"],
      open: async (context) => ({ context, connect: connectBare }),
    },
    {
      name: "requests",
      measurements: [],
      fullOnly: ["pair"],
      open: async (context) => ({ context, connect: connectRequests }),
    },
    {
      name: "v3lock",
      measurements: ["pair", "pairs256", "handoff"],
      onceInQuick: ["pairs256", "handoff"],
      fullOnly: ["pair3", "handoff3"],
      open: async (context) => ({ context, connect: connectV3lock }),
    },
    {
      name: "etcd3",
      measurements: ["pairs256", "handoff"],
      onceInQuick: ["pairs256", "handoff"],
      fullOnly: ["pair"],
      open: async (context) => ({ context, connect: connectEtcd3 }),
    },
    {
      name: "etcdctl",
      measurements: [],
      fullOnly: ["processes"],
      open: async (context) => ({ context, connect: connectBare }),
    },
  ],

  ratios: {
    pair_p50_vs_floor: ratio("pair_p50", "txn-delete"),
    requests_pair_p50_vs_floor: { ...ratio("pair_p50", "txn-delete", "requests"), fullOnly: true },
    pair_p50_vs_v3lock: ratio("pair_p50", "v3lock"),
    pair_p50_vs_etcd3: { ...ratio("pair_p50", "etcd3"), fullOnly: true },
    pairs_256_vs_floor: ratio("pairs_256", "txn-delete"),
    pairs_256_vs_v3lock: ratio("pairs_256", "v3lock"),
    pairs_256_vs_etcd3: ratio("pairs_256", "etcd3"),
    cpu_per_pair_vs_etcd3: ratio("cpu_per_pair", "etcd3"),
    proposals_per_pair: figure("proposals_per_pair"),
    proposals_per_contended_acquire: figure("proposals_per_contended_acquire"),
    proposals_per_pair_vs_floor: ratio("proposals_per_pair", "txn-delete"),
    proposals_per_contended_acquire_vs_v3lock: ratio("proposals_per_contended_acquire", "v3lock"),
    handoff_per_s_16_vs_v3lock: ratio("handoff_per_s_16", "v3lock"),
    handoff_per_s_16_vs_etcd3: ratio("handoff_per_s_16", "etcd3"),
    handoff_gap_p99_vs_v3lock: ratio("handoff_gap_p99", "v3lock"),
    pair_p50_3n_vs_floor: { ...ratio("pair_p50_3n", "txn-delete"), fullOnly: true },
    pair_p50_3n_vs_v3lock: { ...ratio("pair_p50_3n", "v3lock"), fullOnly: true },
    handoff_per_s_16_3n_vs_v3lock: { ...ratio("handoff_per_s_16_3n", "v3lock"), fullOnly: true },
  },

  async setup() {
    const [one, three] = [await startEtcd(1), await startEtcd(3)];
    nodes = [...one, ...three];
    return {
      one: one[0]?.endpoint ?? "",
      three: three.map(({ endpoint }) => endpoint),
    };
  },

  async teardown() {
    await Promise.all(nodes.map((node) => node.remove()));
  },
};

/**
 * @param {string} metric
 * @param {string} to
 * @param {string} [of]
 */
function ratio(metric, to, of = "holdfast") {
  return { of: { contender: of, metric }, to: [{ contender: to, metric }] };
}

/** A figure of ours that needs no other to be judged. */
function figure(/** @type {string} */ metric) {
  return { of: { contender: "holdfast", metric }, to: [] };
}

// The contenders.

async function connectHoldfast(/** @type {readonly string[]} */ endpoints) {
  // Not literals: the type checker runs before the package is built.
  const { connect } = await import(built("index.js"));
  const { etcdBackend } = await import(built("backends/etcd/index.js"));
  const locks = await connect(etcdBackend({ endpoints, prefix: "bench/" }), { ttl: `${ttlSeconds}s` });
  return {
    request: (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => locks.request(name, run),
    close: () => locks.close(),
  };
}

/** Not a lock: what it costs at least to put a key and to delete it again. */
async function connectBare(/** @type {readonly string[]} */ endpoints) {
  const { client, methods, close } = await openClient(endpoints);
  const { id: lease } = await client.call(methods.leaseGrant, { ttl: BigInt(ttlSeconds) });
  let count = 0;
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      const key = Buffer.from(`bare/${name}/${++count}`);
      await client.call(methods.transact, {
        compare: [{ target: 1, key, createRevision: 0n }],
        success: [{ put: { key, lease } }],
      });
      await run();
      await client.call(methods.deleteRange, { key });
    },
    close,
  };
}

/**
 * Not a lock either: the two requests that holdfast sends, and nothing around them. It puts an entry that says who it is if
 * none of its keys is taken, looks at what is ahead, and deletes just that entry.
 */
async function connectRequests(/** @type {readonly string[]} */ endpoints) {
  const { client, methods, close } = await openClient(endpoints);
  const { id: lease } = await client.call(methods.leaseGrant, { ttl: BigInt(ttlSeconds) });
  const value = Buffer.alloc(150, "x");
  const createdAt = (/** @type {Buffer} */ key, /** @type {bigint} */ createRevision) => ({
    target: 1,
    key,
    createRevision,
  });
  let count = 0;
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      count += 1;
      const [first, last] = [Buffer.from(`requests/${name}/`), Buffer.from(`requests/${name}0`)];
      const keys = [64, 4096, Infinity].map((share) =>
        Buffer.from(`requests/${name}/${share}:${count % share}`),
      );
      const key = keys[0] ?? first;
      const { header } = await client.call(methods.transact, {
        compare: keys.map((each) => createdAt(each, 0n)),
        success: [
          { range: { key: first, rangeEnd: last, sortOrder: 2, sortTarget: 2, limit: 1n } },
          { put: { key, value, lease } },
        ],
      });
      await run();
      await client.call(methods.transact, {
        compare: [createdAt(key, header.revision)],
        success: [{ deleteRange: { key } }],
      });
    },
    close,
  };
}

/** etcd's own lock service. A lease is one owner: two requests at once need two. */
async function connectV3lock(/** @type {readonly string[]} */ endpoints) {
  const { client, methods, close } = await openClient(endpoints);
  const { codecOf, bytes, int64 } = await import(built("backends/etcd/client/codec.js"));
  const lock = {
    path: "/v3lockpb.Lock/Lock",
    request: codecOf({ name: { number: 1, kind: bytes }, lease: { number: 2, kind: int64 } }),
    response: codecOf({ key: { number: 2, kind: bytes } }),
  };
  const unlock = {
    path: "/v3lockpb.Lock/Unlock",
    request: codecOf({ key: { number: 1, kind: bytes } }),
    response: codecOf({}),
  };
  /** @type {bigint[]} */
  const leases = [];
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      const lease = leases.pop() ?? (await client.call(methods.leaseGrant, { ttl: BigInt(ttlSeconds) })).id;
      const { key } = await client.call(
        lock,
        { name: Buffer.from(`v3/${name}`), lease },
        { deadlineMs: 60_000 },
      );
      await run();
      await client.call(unlock, { key });
      leases.push(lease);
    },
    close,
  };
}

/** It cannot wait: whoever finds the lock taken tries again. */
async function connectEtcd3(/** @type {readonly string[]} */ endpoints) {
  const { Etcd3, EtcdLockFailedError } = await import("etcd3");
  const client = new Etcd3({ hosts: [...endpoints] });
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      for (;;) {
        const lock = client.lock(`etcd3/${name}`).ttl(ttlSeconds);
        try {
          await lock.acquire();
        } catch (error) {
          if (!(error instanceof EtcdLockFailedError)) throw error;
          await new Promise((resolve) => setTimeout(resolve, 10));
          continue;
        }
        await run();
        await lock.release();
        return;
      }
    },
    close: async () => client.close(),
  };
}

function built(/** @type {string} */ path) {
  return new URL(`../../dist/${path}`, import.meta.url).href;
}

async function openClient(/** @type {readonly string[]} */ endpoints) {
  const { EtcdClient } = await import(built("backends/etcd/client/client.js"));
  const methods = await import(built("backends/etcd/client/methods.js"));
  const client = new EtcdClient({ endpoints });
  return { client, methods, close: () => client.close() };
}

// What is measured.

/**
 * @param {Subject} subject
 * @param {readonly string[]} endpoints
 * @param {(locker: Locker) => Promise<Values>} measure
 */
async function withLocker(subject, endpoints, measure) {
  const locker = await subject.connect(endpoints);
  try {
    return await measure(locker);
  } finally {
    await locker.close();
  }
}

/**
 * One pair after the other.
 *
 * @param {Request} request
 * @param {Budget} budget
 * @param {string} endpoint
 */
async function pairs(request, budget, endpoint) {
  const { measureMs } = stretched(budget);
  const before = await proposalsOf(endpoint);
  /** @type {number[]} */
  const micros = [];
  await forMs(measureMs, async () => {
    const start = performance.now();
    await request("pair", idle);
    micros.push((performance.now() - start) * 1000);
  });
  const proposals = (await proposalsOf(endpoint)) - before;
  return { p50: quantile(micros, 0.5), count: micros.length, proposals };
}

/**
 * Many at once, each on a name of its own.
 *
 * @param {Request} request
 * @param {Budget} budget
 */
async function manyPairs(request, budget) {
  const { warmUpMs, measureMs } = stretched(budget);
  const loop = async (/** @type {number} */ ms) => {
    let count = 0;
    const start = performance.now();
    const each = (/** @type {number} */ looper) =>
      forMs(ms, async () => {
        await request(`pair:${looper}`, idle);
        count++;
      });
    await Promise.all(Array.from({ length: loopers }, (_, looper) => each(looper)));
    return { count, ms: performance.now() - start };
  };
  await loop(warmUpMs);
  const cpu = process.cpuUsage();
  const { count, ms } = await loop(measureMs);
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: (count * 1000) / ms, cpuMicros: (user + system) / count };
}

/**
 * Several take turns on one name. A gap is the time from the end of one section to the start of the next.
 *
 * @param {Request} request
 * @param {Budget} budget
 * @param {string} endpoint
 */
async function handOver(request, budget, endpoint) {
  const { warmUpMs, measureMs } = stretched(budget);
  /** @type {number[]} */
  let gaps = [];
  let endedAt = 0;
  const section = async () => {
    if (endedAt > 0) gaps.push((performance.now() - endedAt) * 1000);
    endedAt = performance.now();
  };
  const loop = async (/** @type {number} */ ms) => {
    const start = performance.now();
    await Promise.all(Array.from({ length: waiters }, () => forMs(ms, () => request("busy", section))));
    return performance.now() - start;
  };
  await loop(warmUpMs);
  gaps = [];
  endedAt = 0;
  const before = await proposalsOf(endpoint);
  const ms = await loop(measureMs);
  const count = gaps.length + 1;
  const proposals = ((await proposalsOf(endpoint)) - before) / count;
  return { perSecond: (count * 1000) / ms, p50: quantile(gaps, 0.5), p99: quantile(gaps, 0.99), proposals };
}

/** Sixteen shells under etcdctl lock: the gap contains the start of a shell. */
async function fromShells(/** @type {string} */ endpoint) {
  const execute = promisify(execFile);
  const env = { ...process.env, ETCDCTL_API: "3" };
  const args = [`--endpoints=${endpoint}`, "lock", "ctl", "date", "+%s%N"];
  const shells = Array.from({ length: waiters }, () => execute("etcdctl", args, { env }));
  const times = (await Promise.all(shells)).map(({ stdout }) => Number(stdout.trim()) / 1000);
  times.sort((a, b) => a - b);
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time));
  const lasted = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return {
    handoff_per_s_16: (gaps.length * 1e6) / lasted,
    handoff_gap_p50: quantile(gaps, 0.5),
    handoff_gap_p99: quantile(gaps, 0.99),
  };
}

/**
 * @param {number} ms
 * @param {() => Promise<void>} work
 */
async function forMs(ms, work) {
  const until = performance.now() + ms;
  do await work();
  while (performance.now() < until);
}

async function proposalsOf(/** @type {string} */ endpoint) {
  const text = await (await fetch(`${endpoint}/metrics`)).text();
  return Number(/^etcd_server_proposals_committed_total (.*)$/m.exec(text)?.[1]);
}

/**
 * @param {readonly number[]} values
 * @param {number} share
 */
function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
