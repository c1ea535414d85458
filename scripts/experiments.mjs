/** npm run experiments: the famous failures of distributed locks with real servers; results go to docs/evidence.md. Runs on dist. */
import { parseArgs } from "node:util";
import { locate, versionOf } from "../dist/verify/servers/programs.js";
import { postgresFolders } from "../dist/verify/servers/postgres.js";
import { experiments } from "./experiments/plan.mjs";
import { keepResult, readResults, writePage } from "./experiments/report.mjs";
import { Failure, main, run } from "./lib/run.mjs";

const usage = `npm run experiments -- [--only a1,b1] [--rounds N] [--full] [--seed N] [--page]
  --only LIST   some of ${experiments.map(({ id }) => id).join(", ")}
  --rounds N    how many rounds each has; 200 if not given
  --full        1,000 rounds
  --seed N      for what is left to chance; by chance if not given
  --page        run nothing, write docs/evidence.md anew from what was kept`;

/** How each server says what it is. @type {Record<string, () => Promise<string>>} */
const versions = {
  redis: async () => /v=([\d.]+)/.exec(await versionOf("redis-server", ["--version"]))?.[1] ?? "?",
  etcd: async () => /([\d.]+)/.exec(await versionOf("etcd", ["--version"]))?.[1] ?? "?",
  zookeeper: async () => "3.8",
  postgres: async () =>
    /([\d.]+)/.exec(await versionOf(await locate("postgres", postgresFolders), ["--version"]))?.[1] ?? "?",
};

await main(async () => {
  const asked = readArguments();
  if (asked === null) throw new Failure(usage);
  if (asked.page) return writePage(await readResults());
  // The timers of the library keep no process alive, and an experiment may wait for nothing else.
  const alive = setInterval(() => {}, 2 ** 30);
  const { output } = await run("git", ["rev-parse", "--short", "HEAD"], { quiet: true });
  for (const { id, title, servers, run: perform } of experiments) {
    if (asked.only !== null && !asked.only.includes(id)) continue;
    const startedAt = performance.now();
    console.log(`\n${id}: ${title}, seed ${asked.seed}`);
    const rows = await perform({ rounds: asked.rounds, seed: asked.seed });
    const seconds = (performance.now() - startedAt) / 1_000;
    for (const { label, rounds, extra, sha256: _sum, ttlMs: _ttl, ...counts } of rows) {
      console.log(`  ${label}: ${JSON.stringify({ rounds, ...counts, ...extra })}`);
    }
    console.log(`  ${seconds.toFixed(1)} s`);
    const told = await Promise.all(servers.map(async (name) => [name, (await versions[name]?.()) ?? "?"]));
    const on = new Date().toISOString().slice(0, 10);
    const all = { node: process.version, ...Object.fromEntries(told) };
    await keepResult(id, { rows, seconds, on, commit: output.trim(), seed: asked.seed, versions: all });
  }
  clearInterval(alive);
});

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
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
    return { only, rounds, seed, page: values.page };
  } catch {
    return null;
  }
}
