/** npm run simulate: runs the simulator of src/verify on many seeds, or replays one and shows all of it. Runs on dist. */
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { simulate, simulateAll } from "../dist/verify/simulate.js";

const usage = `npm run simulate -- --seeds N [--from N] [--jobs N]     run seeds, stop at the first that fails
npm run simulate -- --seed N [--report out.html]        replay one seed, print its history, draw it
Exit code: 0 valid, 1 invalid, 2 unknown, 64 wrong arguments.`;

/** Seeds that a worker is given at a time. */
const chunk = 100;

/**
 * @typedef {{ seed: number, verdict: string, findings: string[] }} Finding a seed that is not valid
 * @typedef {{ findings: Finding[], grants: number, undone: number }} Report what a worker says of its seeds
 */

if (isMainThread) process.exitCode = await main();
else
  parentPort?.on(
    "message",
    (from) => void runChunk(from).then((report) => parentPort?.postMessage(report, [])),
  );

async function main() {
  const asked = readArguments();
  if (asked === null) {
    console.error(usage);
    return 64;
  }
  return asked.seed === undefined
    ? runMany(asked.from, asked.seeds, asked.jobs)
    : replay(asked.seed, asked.report);
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        seeds: { type: "string" },
        from: { type: "string", default: "1" },
        jobs: { type: "string", default: String(Math.min(2, availableParallelism())) },
        seed: { type: "string" },
        report: { type: "string" },
      },
    });
    const { seed, report } = values;
    if ((seed === undefined) === (values.seeds === undefined)) return null;
    if (seed === undefined && report !== undefined) return null;
    return {
      seed: seed === undefined ? undefined : whole(seed, 0),
      report,
      seeds: whole(values.seeds ?? "1", 1),
      from: whole(values.from, 0),
      jobs: whole(values.jobs, 1),
    };
  } catch {
    return null;
  }
}

/** @param {string} text @param {number} least */
function whole(text, least) {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < least) throw new RangeError(text);
  return number;
}

/** @param {number} from @param {number} seeds @param {number} jobs */
async function runMany(from, seeds, jobs) {
  const startedAt = performance.now();
  const until = from + seeds;
  /** @type {Finding[]} */
  const findings = [];
  let [next, done, grants, undone] = [from, 0, 0, 0];
  const speed = () => Math.round((done / (performance.now() - startedAt)) * 1000);
  const failed = () => findings.some(({ verdict }) => verdict === "invalid");
  const work = async () => {
    const worker = new Worker(new URL(import.meta.url), { resourceLimits: { maxYoungGenerationSizeMb: 64 } });
    while (next < until && !failed()) {
      const part = { from: next, until: Math.min(until, next + chunk) };
      next = part.until;
      const report = await ask(worker, part);
      done += part.until - part.from;
      grants += report.grants;
      undone += report.undone;
      findings.push(...report.findings);
      if (process.stdout.isTTY) process.stdout.write(`\r${done} of ${seeds} seeds, ${speed()} seeds/s `);
    }
    await worker.terminate();
  };
  await Promise.all(Array.from({ length: Math.min(jobs, Math.ceil(seeds / chunk)) }, work));
  if (process.stdout.isTTY) process.stdout.write("\r\x1b[K");
  console.log(`${done} seeds from ${from}: ${grants} grants, ${speed()} seeds/s`);
  console.log(`${undone} acknowledged writes were undone where the resource checked no token`);
  const [worst] = findings.toSorted((a, b) => rank(a) - rank(b) || a.seed - b.seed);
  if (worst === undefined) return 0;
  console.log(`${findings.length} seeds are not valid. Seed ${worst.seed} is ${worst.verdict}:`);
  for (const text of worst.findings) console.log(`  ${text}`);
  console.log(`Replay it: npm run simulate -- --seed ${worst.seed} --report seed-${worst.seed}.html`);
  return worst.verdict === "invalid" ? 1 : 2;
}

/** @param {Finding} finding */
function rank({ verdict }) {
  return verdict === "invalid" ? 0 : 1;
}

/** @param {Worker} worker @param {{ from: number, until: number }} seeds @returns {Promise<Report>} */
function ask(worker, seeds) {
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("message", (report) => {
      worker.off("error", reject);
      resolve(report);
    });
    worker.postMessage(seeds, []);
  });
}

/** @param {{ from: number, until: number }} seeds */
async function runChunk({ from, until }) {
  // An error that is thrown a million times needs no stack.
  Error.stackTraceLimit = 0;
  /** @type {Report} */
  const report = { findings: [], grants: 0, undone: 0 };
  await simulateAll(range(from, until), ({ seed, result, undoneUnfenced }) => {
    report.grants += result.checked.find(({ invariant }) => invariant === "M1")?.looked ?? 0;
    report.undone += undoneUnfenced;
    if (result.verdict !== "valid") {
      report.findings.push({ seed, verdict: result.verdict, findings: textsOf(result) });
    }
    return result.verdict !== "invalid";
  });
  return report;
}

/** @param {number} from @param {number} until */
function* range(from, until) {
  for (let seed = from; seed < until; seed += 1) yield seed;
}

/** @param {import("../dist/verify/checker.js").CheckResult} result */
function textsOf({ violations, doubts }) {
  return [...violations.map(({ invariant, message }) => `${invariant}: ${message}`), ...doubts];
}

/** @param {number} seed @param {string | undefined} file */
async function replay(seed, file) {
  const { formatHistory } = await import("../dist/verify/history-text.js");
  const { events, result, plan } = await simulate(seed);
  console.log(JSON.stringify(plan));
  process.stdout.write(formatHistory(events));
  for (const text of textsOf(result)) console.log(text);
  if (file !== undefined) {
    const { renderReport } = await import("../dist/verify/report.js");
    await writeFile(file, renderReport(events, result, { title: `Seed ${seed}` }));
    await writeFile(`${file}.jsonl`, formatHistory(events));
    console.log(`The report is in ${file}, the history in ${file}.jsonl`);
  }
  console.log(`Seed ${seed}: ${result.verdict}`);
  return { valid: 0, invalid: 1, unknown: 2 }[result.verdict];
}
