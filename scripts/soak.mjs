/** npm run soak: Redis and etcd for a long time, a fault every 5 to 30 seconds; promises hold, memory stays flat, nothing is left. Runs on dist. */
import { parseArgs } from "node:util";
import { durationMs } from "../dist/core/duration.js";
import { clusters } from "../dist/verify/clusters/index.js";
import { clientFaults } from "../dist/verify/live/plan.js";
import { verifyStore } from "../dist/verify/live/verify.js";
import { keepSignals } from "../dist/verify/servers/server-process.js";
import { Failure, main } from "./lib/run.mjs";

const usage = `npm run soak -- [--for 20m] [--seed N] [--only redis,etcd]`;

/** By how much the heap of a client may differ between the second quarter of its life and the last, in bytes. */
const allowance = 6 * 2 ** 20;

/** How long a client has to live for its memory to say something: clients are killed, and in a long soak none lives for most of it. */
const longLifeMs = 600_000;

/** How many times a client has to be measured, so that a quarter is more than one. */
const leastMeasured = 8;

await main(async () => {
  const { forMs, seed, only } = readArguments();
  console.log(`Soaking ${only.join(" and ")} for ${Math.round(forMs / 1_000)} s, seed ${seed}`);
  const ended = new AbortController();
  keepSignals();
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => ended.abort(new Failure(`Ended by ${signal}: healed, and nothing was left.`)));
  }
  const soaked = only.map((name) => soak(name, forMs, seed, ended.signal));
  // If one cannot be run, the other ends in order.
  for (const each of soaked) each.catch((error) => ended.abort(error));
  await Promise.allSettled(soaked);
  const results = await Promise.all(soaked);
  const failed = results.flat();
  if (failed.length > 0) throw new Failure(failed.join("\n"));
  console.log("All promises held, memory stayed flat, nothing was left.");
});

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        for: { type: "string", default: "20m" },
        seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
        only: { type: "string", default: "redis,etcd" },
      },
    });
    const only = values.only.split(",").filter((name) => name === "redis" || name === "etcd");
    if (only.length === 0) throw new RangeError(values.only);
    return {
      forMs: durationMs(values.for, { option: "--for", leastMs: 10_000 }),
      seed: Number(values.seed),
      only,
    };
  } catch (error) {
    throw new Failure(`${String(error)}\n${usage}`);
  }
}

/**
 * Gives what went wrong.
 *
 * @param {"redis" | "etcd"} name
 * @param {number} forMs
 * @param {number} seed
 * @param {AbortSignal} signal
 */
async function soak(name, forMs, seed, signal) {
  const cluster = await clusters[name]();
  try {
    signal.throwIfAborted();
    let toldAt = performance.now();
    const verified = await verifyStore({
      url: cluster.url,
      forMs,
      clients: 5,
      faults: [...clientFaults.filter((fault) => fault !== "replay"), ...cluster.usual],
      servers: cluster.faults,
      seed,
      ttlMs: 3_000,
      gapMs: [5_000, 30_000],
      signal,
      onProgress: ({ elapsedMs, grants, faults }) => {
        if (performance.now() - toldAt < 60_000) return;
        toldAt = performance.now();
        console.log(`${name}: ${Math.round(elapsedMs / 1_000)} s, ${grants} grants, ${faults} faults`);
      },
    });
    const { judgement, grants, losses, faults, samples } = verified;
    const brought = [...faults].map(([fault, count]) => `${count} ${fault}`).join(", ");
    console.log(`${name} (${cluster.version}): ${grants} grants, ${losses} losses; ${brought}`);
    const problems = judgement.result.violations.map(
      ({ invariant, message }) => `${name}: ${invariant}: ${message}`,
    );
    // A short soak has no time for each fault, which is no fault of the store.
    if (judgement.result.verdict === "unknown" && forMs >= 600_000) problems.push(...judgement.result.doubts);
    return [...problems, ...memoryProblems(name, samples, Math.min(forMs / 2, longLifeMs))];
  } finally {
    await cluster.stop();
  }
}

/**
 * Looks at the clients that lived for long enough.
 *
 * @param {string} name
 * @param {ReadonlyMap<string, readonly import("../dist/verify/live/fleet.js").Measured[]>} samples
 * @param {number} lifeMs
 */
function memoryProblems(name, samples, lifeMs) {
  const problems = [];
  let seen = 0;
  for (const [proc, measured] of samples) {
    const livedMs = (measured.at(-1)?.atMs ?? 0) - (measured[0]?.atMs ?? 0);
    if (livedMs < lifeMs || measured.length < leastMeasured) continue;
    seen += 1;
    const quarter = Math.floor(measured.length / 4);
    const heapOf = (/** @type {typeof measured} */ part) => median(part.map(({ heap }) => heap));
    const [early, late] = [heapOf(measured.slice(quarter, 2 * quarter)), heapOf(measured.slice(3 * quarter))];
    const seenHeap = `${name} ${proc}: heap ${mebibytes(early)} in the second quarter, ${mebibytes(late)} in the last`;
    console.log(seenHeap);
    if (late - early > allowance) problems.push(`${seenHeap}: more than ${mebibytes(allowance)} more`);
  }
  if (seen > 0) return problems;
  const life = Math.round(lifeMs / 1_000);
  return [`${name}: memory was not measured, since no client lived for ${life} s: try another --seed`];
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** @param {number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
