/** npm test: provides servers, builds, runs vitest, and ends with one plain line; what is tested is left to test/. */
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { provideNodes } from "./lib/node-versions.mjs";
import { provideServers } from "./lib/provide-servers.mjs";
import { cache, Failure, main, mustRun, root, run, tool } from "./lib/run.mjs";
import { servers } from "./servers.mjs";

const usage = `npm test [-- [backend…] [vitest arguments]]
  npm test               all tests, with the servers of all backends
  npm test -- memory     the tests of one backend, with its server only
  npm test -- -t fifo    arguments that name no backend go to vitest`;

await main(async () => {
  const args = process.argv.slice(2);
  if (args.includes("--help")) return console.log(usage);
  /** @type {Tally} */
  let tally = { passed: 0, failed: 1, failures: [] };
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
  if (major > 22 || (major === 22 && minor >= 13)) return { passed: 0, failed: 0, failures: [] };
  const [newer] = await provideNodes([24]);
  if (newer === undefined) throw new Failure("Node 24 could not be had.");
  console.log("Testing sqlite on Node 24, which has SQLite built in");
  return vitest(newer.node, await testsOf(["sqlite"]), env);
}

/**
 * Runs vitest on a Node and counts.
 *
 * @param {string} node
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
async function vitest(node, args, env) {
  const report = join(cache, "vitest.json");
  await mkdir(cache, { recursive: true });
  await rm(report, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const { code } = await run(node, [tool("vitest"), "run", ...reporters, ...args], { env });
  return count(await readReport(report), code);
}

/** @typedef {{ passed: number, failed: number, failures: string[] }} Tally failures: a line for each, with its message */

/** @returns {Tally} */
function plus(/** @type {Tally} */ one, /** @type {Tally} */ two) {
  return {
    passed: one.passed + two.passed,
    failed: one.failed + two.failed,
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

/**
 * @typedef {object} Report what vitest's JSON reporter writes, as far as it is read here
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {FileReport[]} testResults
 */

/**
 * @typedef {object} FileReport
 * @property {string} name
 * @property {string} status
 * @property {string} message
 * @property {{ status: string, fullName: string, failureMessages: string[] }[]} assertionResults
 */

/** @returns {Promise<Report | undefined>} undefined when vitest ended without one */
async function readReport(/** @type {string} */ path) {
  return readFile(path, "utf8").then(JSON.parse, () => undefined);
}

/**
 * A file that could not be loaded counts as one failure, and so does a run that failed otherwise or tested nothing.
 *
 * @param {Report | undefined} report
 * @param {number} code
 */
function count(report, code) {
  const passed = report?.numPassedTests ?? 0;
  const broken = report?.testResults.filter(
    ({ status, assertionResults }) => status === "failed" && assertionResults.length === 0,
  );
  const failed = (report?.numFailedTests ?? 0) + (broken?.length ?? 0);
  const skipped = (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0);
  if (skipped > 0) console.log(`${skipped} skipped`);
  if (passed + failed === 0) console.error("No test was run.");
  if (code !== 0 && failed === 0) console.error(`vitest ended with code ${code} although no test failed.`);
  const failures = (report?.testResults ?? []).flatMap(failuresOf);
  return { passed, failed: Math.max(failed, code !== 0 || passed === 0 ? 1 : 0), failures };
}

/** The whole message stands where vitest printed it, thousands of lines up: here, what tells one failure from another. */
function failuresOf(/** @type {FileReport} */ { name, status, message, assertionResults }) {
  const file = relative(root, name);
  const excerpt = (/** @type {string} */ text) => text.split("\n").slice(0, 8).join("\n    ");
  const tests = assertionResults
    .filter((one) => one.status === "failed")
    .map(
      ({ fullName, failureMessages }) => `${file}: ${fullName}\n    ${excerpt(failureMessages.join("\n"))}`,
    );
  return status === "failed" && tests.length === 0 ? [`${file}\n    ${excerpt(message)}`] : tests;
}
