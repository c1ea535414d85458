/**
 * Locks among the processes of one machine: the SQLite backend against proper-lockfile, a file made with O_EXCL and a bare
 * insert and delete in SQLite, the floor; and a hand-over against a hop over a local socket.
 */
import { openSync, closeSync, unlinkSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopThenDrainFleet } from "../fleet.mjs";
import { hopMicros } from "../hop.mjs";
import { ringMicros } from "../ring.mjs";
import { idle, pairMicros } from "../workloads.mjs";

/** @import { Suite } from "../types.ts" */
/** @import { Request } from "../workloads.mjs" */

/** @typedef {{ folder: string }} Context */
/** @typedef {ReturnType<typeof openBare>} Rows */
/** @typedef {{ request?: Request, pair?: () => unknown, rows?: Rows, openShared?: () => Rows }} Subject */

const shape = { processes: 4, waiters: 8, holdMs: 1 };
const require = createRequire(import.meta.url);

/** @type {Suite<Subject, Context>} */
export const suite = {
  name: "sqlite",
  floor: "sqlite-bare",

  metrics: {
    pair_p50: { unit: "µs", better: "lower" },
    handoff_other_per_s_4x8: { unit: "/s", better: "higher" },
    drain_ms_4x8: { unit: "ms", better: "lower" },
    drain_gap_p50_4x8: { unit: "µs", better: "lower" },
    inversions_4x8: { unit: "", better: "lower" },
    hop_p50: { unit: "µs", better: "lower" },
    commit_hop_p50: { unit: "µs", better: "lower" },
    ring_p50: { unit: "µs", better: "lower" },
  },

  measurements: {
    pair: {
      run: async ({ pair }, budget) => {
        if (pair === undefined) throw new Error("the contender has no pair");
        return { pair_p50: await pairMicros(pair, budget) };
      },
    },
    // The drains find code that is compiled, as the messages of the hop do.
    loopAndDrain: {
      run: async (_subject, { warmUpMs, measureMs }, job) => {
        const { looped, drained } = await loopThenDrainFleet(job, {
          ...shape,
          warmUpMs,
          measureMs: 2 * measureMs,
          drains: 6,
        });
        return {
          handoff_other_per_s_4x8: looped.toOthersPerSecond,
          drain_ms_4x8: drained.drainMs,
          drain_gap_p50_4x8: drained.gapUs,
          inversions_4x8: drained.inversions,
        };
      },
    },
    hop: {
      run: async (_subject, budget) => ({ hop_p50: await hopMicros(budget) }),
    },
    // The least that a hand-over costs if the file says who holds: the holder's row is out before the next hears of it.
    commitHop: {
      run: async ({ rows }, budget) => {
        if (rows === undefined) throw new Error("the contender has no bare table");
        const [prepare, work] = [() => rows.take("hop"), () => rows.free("hop")];
        return { commit_hop_p50: await hopMicros(budget, { prepare, work }) };
      },
    },
    // The same in as many processes as the drain has, which sleep for as long in between.
    ring: {
      run: async (_subject, _budget, job) => ({ ring_p50: await ringMicros(job, shape.processes) }),
    },
  },

  contenders: [
    {
      name: "holdfast",
      measurements: ["pair", "loopAndDrain"],
      async open({ folder }) {
        // Not a literal: the type checker runs before the package is built.
        const built = new URL("../../dist/index.js", import.meta.url).href;
        const { connect } = await import(built);
        const locks = await connect(`sqlite:${join(folder, "locks.db")}`);
        return {
          request: (name, run) => locks.request(name, run),
          pair: () => locks.request("pair", idle),
        };
      },
    },
    {
      name: "sqlite-bare",
      measurements: ["pair", "commitHop", "ring"],
      async open({ folder }) {
        const rows = openBare(join(folder, `bare-${process.pid}.db`));
        const pair = () => {
          rows.take("pair");
          rows.free("pair");
        };
        return { pair, rows, openShared: () => openBare(join(folder, "ring.db"), true) };
      },
    },
    {
      name: "proper-lockfile",
      measurements: ["pair"],
      async open({ folder }) {
        const { lock } = require("proper-lockfile");
        const file = join(folder, "resource");
        await writeFile(file, "");
        return {
          pair: async () => {
            const release = await lock(file);
            await release();
          },
        };
      },
    },
    {
      name: "o-excl",
      measurements: ["pair"],
      async open({ folder }) {
        const file = join(folder, "excl.lock");
        return {
          pair: () => {
            closeSync(openSync(file, "wx"));
            unlinkSync(file);
          },
        };
      },
    },
    {
      name: "uds-hop",
      measurements: ["hop", "ring"],
      async open() {
        return {};
      },
    },
  ],

  ratios: {
    pair_p50_vs_floor_sqlite: {
      of: { contender: "holdfast", metric: "pair_p50" },
      to: [{ contender: "sqlite-bare", metric: "pair_p50" }],
    },
    pair_p50_vs_proper_lockfile: {
      of: { contender: "holdfast", metric: "pair_p50" },
      to: [{ contender: "proper-lockfile", metric: "pair_p50" }],
    },
    pair_p50_vs_o_excl: {
      of: { contender: "holdfast", metric: "pair_p50" },
      to: [{ contender: "o-excl", metric: "pair_p50" }],
    },
    handoff_other_per_s_4x8: {
      of: { contender: "holdfast", metric: "handoff_other_per_s_4x8" },
      to: [],
    },
    handoff_gap_p50_vs_uds_hop: {
      of: { contender: "holdfast", metric: "drain_gap_p50_4x8" },
      to: [{ contender: "uds-hop", metric: "hop_p50" }],
    },
    commit_hop_p50_vs_uds_hop: {
      of: { contender: "sqlite-bare", metric: "commit_hop_p50" },
      to: [{ contender: "uds-hop", metric: "hop_p50" }],
    },
    handoff_gap_p50_vs_commit_hop: {
      of: { contender: "holdfast", metric: "drain_gap_p50_4x8" },
      to: [{ contender: "sqlite-bare", metric: "commit_hop_p50" }],
    },
    ring_hop_p50_vs_uds_hop: {
      of: { contender: "uds-hop", metric: "ring_p50" },
      to: [{ contender: "uds-hop", metric: "hop_p50" }],
    },
    ring_commit_hop_p50_vs_uds_hop: {
      of: { contender: "sqlite-bare", metric: "ring_p50" },
      to: [{ contender: "uds-hop", metric: "hop_p50" }],
    },
    handoff_gap_p50_vs_ring_commit_hop: {
      of: { contender: "holdfast", metric: "drain_gap_p50_4x8" },
      to: [{ contender: "sqlite-bare", metric: "ring_p50" }],
    },
    inversions_4x8: { of: { contender: "holdfast", metric: "inversions_4x8" }, to: [] },
  },

  async setup() {
    return { folder: await mkdtemp(join(tmpdir(), "holdfast-bench-")) };
  },

  async teardown({ folder }) {
    await rm(folder, { recursive: true, force: true });
  },
};

/**
 * The least that a lock in SQLite has to do: a row goes in, unless it is there, and out again. The same library and the
 * same settings as the backend.
 * @param {string} path
 */
function openBare(path, isShared = false) {
  const db = openSqlite(path);
  if (isShared) db.exec("PRAGMA busy_timeout = 5000");
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = NORMAL");
  db.exec(
    "CREATE TABLE IF NOT EXISTS locks (name TEXT PRIMARY KEY, owner TEXT, until INTEGER) WITHOUT ROWID",
  );
  const take = db.prepare("INSERT INTO locks VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
  const free = db.prepare("DELETE FROM locks WHERE name = ? AND owner = ?");
  return {
    take: (/** @type {string} */ name) => void take.run(name, "owner", Date.now() + 30_000),
    free: (/** @type {string} */ name) => void free.run(name, "owner"),
  };
}

/** Opens a file with the library that the backend would take. */
function openSqlite(/** @type {string} */ path) {
  /** @type {any} */
  const builtIn = process.getBuiltinModule?.("node:sqlite");
  const Library = builtIn?.DatabaseSync ?? require("libsql");
  return new Library(path);
}
