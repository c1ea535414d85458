/** npm run experiments: the famous failures of distributed locks with real servers; results go to docs/evidence.md. Runs on dist. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { locate, versionOf } from "../dist/verify/servers/programs.js";
import { postgresFolders } from "../dist/verify/servers/postgres.js";
import { experiments } from "./experiments/plan.mjs";
import { keepRows, readResults, writePage } from "./experiments/report.mjs";
import { Failure, main, root, run } from "./lib/run.mjs";

const usage = `npm run experiments -- [--only a1,b1] [--rows TEXT] [--rounds N] [--full] [--seed N] [--page]
  --only LIST   some of ${experiments.map(({ id }) => id).join(", ")}
  --rows TEXT   of those with several rows (a1, a3, a4, b3, c, d), only those whose label has this text
  --rounds N    how many rounds each has; 200 if not given
  --full        1,000 rounds
  --seed N      for what is left to chance; by chance if not given
  --page        run nothing, write docs/evidence.md anew from what was kept`;

/** How each server, and each library of others, says what it is. @type {Record<string, () => Promise<string>>} */
const versions = {
  redis: async () => /v=([\d.]+)/.exec(await versionOf("redis-server", ["--version"]))?.[1] ?? "?",
  etcd: async () => /([\d.]+)/.exec(await versionOf("etcd", ["--version"]))?.[1] ?? "?",
  zookeeper: zooKeeperVersion,
  "redlock@5": () => packageVersion("redlock-5"),
  "redis-semaphore": () => packageVersion("redis-semaphore"),
  postgres: async () =>
    /([\d.]+)/.exec(await versionOf(await locate("postgres", postgresFolders), ["--version"]))?.[1] ?? "?",
};

const toMs = (/** @type {number} */ ns) => Math.round(ns / 1e6);

await main(async () => {
  const asked = readArguments();
  if (asked === null) throw new Failure(usage);
  if (asked.page) return writePage(await readResults());
  // Whoever ends it early leaves no server behind: those go with the exit.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  // The timers of the library keep no process alive, and an experiment may wait for nothing else.
  const alive = setInterval(() => {}, 2 ** 30);
  const { output } = await run("git", ["rev-parse", "--short", "HEAD"], { quiet: true });
  for (const { id, title, parts, run: perform } of experiments) {
    if (asked.only !== null && !asked.only.includes(id)) continue;
    const startedAt = performance.now();
    const lag = monitorEventLoopDelay({ resolution: 5 });
    lag.enable();
    console.log(`\n${id}: ${title}, seed ${asked.seed}`);
    const rows = await perform({ rounds: asked.rounds, seed: asked.seed, wants: asked.wants });
    const seconds = (performance.now() - startedAt) / 1_000;
    const lagMs = { p99: toMs(lag.percentile(99)), most: toMs(lag.max) };
    lag.disable();
    for (const { label, rounds, extra, sha256: _sum, ttlMs: _ttl, ...counts } of rows) {
      console.log(`  ${label}: ${JSON.stringify({ rounds, ...counts, ...extra })}`);
    }
    console.log(`  ${seconds.toFixed(1)} s`);
    const told = await Promise.all(parts.map(async (name) => [name, (await versions[name]?.()) ?? "?"]));
    const on = new Date().toISOString().slice(0, 10);
    const all = { node: process.version, ...Object.fromEntries(told) };
    const { seed } = asked;
    await keepRows(id, rows, { seconds, lagMs, on, commit: output.trim(), seed, versions: all });
  }
  clearInterval(alive);
  // Node 20 may spin for ever while it closes what hundreds of processes and sockets have left behind.
  process.exit();
});

/** Its jars carry it in their names. */
async function zooKeeperVersion() {
  const jars = await readdir("/usr/share/java");
  return jars.flatMap((jar) => /^zookeeper-([\d.]+)\.jar$/.exec(jar)?.[1] ?? []).at(0) ?? "?";
}

/** @param {string} name @returns {Promise<string>} */
async function packageVersion(name) {
  const text = await readFile(join(root, "node_modules", name, "package.json"), "utf8");
  return JSON.parse(text).version;
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
        rows: { type: "string", default: "" },
        rounds: { type: "string" },
        full: { type: "boolean", default: false },
        seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
        page: { type: "boolean", default: false },
      },
    });
    const only = values.only?.split(",") ?? null;
    const known = experiments.map(({ id }) => id);
    const rounds = values.rounds === undefined ? (values.full ? 1_000 : 200) : Number(values.rounds);
    if (!Number.isSafeInteger(rounds) || rounds < 1) return null;
    if (only?.some((id) => !known.includes(id))) return null;
    const seed = Number(values.seed);
    if (!Number.isSafeInteger(seed) || seed < 0) return null;
    const wants = (/** @type {string} */ label) => label.includes(values.rows);
    return { only, rounds, seed, wants, page: values.page };
  } catch {
    return null;
  }
}
