/** npm test: provides servers, builds, runs vitest, and ends with one plain line; what is tested is left to test/. */
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join, sep } from "node:path";
import { provideNodes } from "./lib/node-versions.mjs";
import { provideServers } from "./lib/provide-servers.mjs";
import { cache, Failure, main, mustRun, root, run, tool } from "./lib/run.mjs";
import { servers } from "./servers.mjs";

const usage = `npm test [-- [backend…] [vitest arguments]]
  npm test               all tests, with the servers of all backends
  npm test -- memory     the tests of one backend, with its server only
  npm test -- -t fifo    arguments that name no backend go to vitest`;

/** @typedef {import("./lib/tally-reporter.mjs").Tally} Tally */
/** @type {Tally} */
const nothing = { passed: 0, failed: 0, skipped: 0, failures: [] };

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes("--help")) return console.log(usage);
  let tally = { ...nothing, failed: 1 };
  try {
    tally = await test(args);
  } finally {
    if (tally.failed > 0) process.exitCode = 1;
    // After the message of a Failure, which goes to stderr first.
    process.on("exit", () => {
      for (const failure of tally.failures) console.log(`failed: ${failure}`);
      console.log(`${tally.passed} passed, ${tally.failed} failed`);
    });
  }
});

/** @param {readonly string[]} args */
async function test(args) {
  const backends = await readdir(join(root, "src", "backends"));
  // Only leading words name backends: in `-t memory` the word belongs to the option.
  const others = args.findIndex((arg) => !backends.includes(arg));
  const chosen = others < 0 ? args : args.slice(0, others);
  const rest = args.slice(chosen.length);
  const files = await testsOf(chosen);
  console.log(`Testing ${chosen.length > 0 ? chosen.join(", ") : `everything (${backends.join(", ")})`}`);

  const env = await provideServers(
    servers.filter((server) => chosen.length === 0 || server.backends.some((name) => chosen.includes(name))),
  );
  console.log("Building dist");
  await mustRun(process.execPath, [join(root, "scripts", "build.mjs")]);

  const tally = await vitest(process.execPath, [...files, ...rest], env);
  if (rest.length > 0 || !(chosen.length === 0 || chosen.includes("sqlite"))) return tally;
  return plus(tally, await testBuiltInSqlite(env));
}

/**
 * The tests of sqlite once more where Node has SQLite built in, if this Node has not: there it is another library.
 *
 * @param {NodeJS.ProcessEnv} env
 */
async function testBuiltInSqlite(env) {
  const [, minor = 0] = process.versions.node.split(".").map(Number);
  const major = Number.parseInt(process.versions.node, 10);
  if (major > 22 || (major === 22 && minor >= 13)) return nothing;
  const [newer] = await provideNodes([24]);
  if (newer === undefined) throw new Failure("Node 24 could not be had.");
  console.log("Testing sqlite on Node 24, which has SQLite built in");
  return vitest(newer.node, await testsOf(["sqlite"]), env);
}

/**
 * Runs vitest on a Node and counts. A run that failed although nothing of it did, or that tested nothing, counts as one failure.
 *
 * @param {string} node
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Tally>}
 */
async function vitest(node, args, env) {
  const path = join(cache, "tally.json");
  await mkdir(cache, { recursive: true });
  await rm(path, { force: true });
  const reporters = [
    "--reporter=default",
    `--reporter=${join(root, "scripts", "lib", "tally-reporter.mjs")}`,
  ];
  const { code } = await run(node, [tool("vitest"), "run", ...reporters, ...args], {
    env: { ...env, HOLDFAST_TALLY: path },
  });
  /** @type {Tally} */
  const tally = await readFile(path, "utf8").then(JSON.parse, () => nothing);
  if (tally.skipped > 0) console.log(`${tally.skipped} skipped`);
  if (tally.failed > 0 || (code === 0 && tally.passed > 0)) return tally;
  const why =
    tally.passed === 0 ? "no test was run" : `vitest ended with code ${code} although nothing failed`;
  return { ...tally, failed: 1, failures: [why] };
}

/** @returns {Tally} */
function plus(/** @type {Tally} */ one, /** @type {Tally} */ two) {
  return {
    passed: one.passed + two.passed,
    failed: one.failed + two.failed,
    skipped: one.skipped + two.skipped,
    failures: [...one.failures, ...two.failures],
  };
}

/**
 * The test files of some backends: every file or folder under test that bears a backend's name, alone or before a dash.
 *
 * @param {readonly string[]} backends
 */
async function testsOf(backends) {
  const all = await readdir(join(root, "test"), { recursive: true });
  const tests = all.filter((path) => path.endsWith(".test.ts"));
  return backends.flatMap((name) => {
    const own = tests.filter((path) =>
      path
        .slice(0, -".test.ts".length)
        .split(sep)
        .some((part) => part === name || part.startsWith(`${name}-`)),
    );
    if (own.length === 0) throw new Failure(`No test of ${name}: test/backends/${name}.test.ts is missing.`);
    return own.map((path) => join("test", path));
  });
}
