/**
 * npm start: the tour. Four processes compete for one lock on a SQLite file. One is killed while it holds, one is frozen
 * past its ttl; each time another takes over, and the resource refuses the late write. Ends by itself; exit code 1 if it
 * did not go as told. Needs dist.
 */
import { fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect } from "holdfast";
import { bold, dim, green, print, red, say, title } from "./lib/live-log.mjs";

/** @typedef {import("./tour-worker.mjs").Task} Task */

const ttlMs = 1_500;
const workMs = 300;
const longestMs = 14_000;

/** What the summary speaks of, as it was seen. */
const seen = {
  /** @type {bigint[]} */
  tokens: [],
  accepted: 0,
  refused: 0,
  killedAt: Number.NaN,
  frozenAt: Number.NaN,
  /** How long it took from then until the next one held. */
  afterKillMs: Number.NaN,
  afterFreezeMs: Number.NaN,
  endedWith: "nothing",
};

/** A sum that many change, one at a time. It remembers the highest token and refuses every lower one. */
const ledger = {
  sum: 0,
  highestToken: 0n,
  /** @type {(token: bigint, sum: number) => string | null} null, or why it refuses */
  write(token, sum) {
    if (token < this.highestToken) return `token ${token} is older than ${this.highestToken}`;
    this.highestToken = token;
    this.sum = sum;
    return null;
  },
};

/** A process that works, and what it has reported. */
class Worker {
  /** @type {Map<string, () => void>} who waits for which step */
  #waiting = new Map();

  /** @param {string} label @param {string} store */
  constructor(label, store) {
    this.label = label;
    const script = fileURLToPath(new URL("./tour-worker.mjs", import.meta.url));
    this.child = fork(script, [store, label, String(ttlMs), String(workMs)]);
    this.child.on("message", (report) => this.#hear(report));
  }

  get pid() {
    return this.child.pid;
  }

  /** Gives it a task; resolves when it is done. */
  async does(/** @type {Task} */ task) {
    const done = this.until("done");
    this.child.send({ task });
    await done;
  }

  /** @param {string} step @returns {Promise<void>} */
  until(step) {
    return new Promise((resolve) => this.#waiting.set(step, resolve));
  }

  reply(/** @type {number | string} */ answer) {
    this.child.send({ reply: answer });
  }

  #hear(/** @type {any} */ report) {
    hear(this, report);
    const resolve = this.#waiting.get(report.step);
    this.#waiting.delete(report.step);
    resolve?.();
  }
}

/** What a worker tells is shown at once; what it asks is answered. @param {Worker} worker @param {any} report */
function hear(worker, report) {
  const { label } = worker;
  switch (report.step) {
    case "granted":
      seen.tokens.push(BigInt(report.token));
      if (Number.isNaN(seen.afterKillMs)) seen.afterKillMs = performance.now() - seen.killedAt;
      if (Number.isNaN(seen.afterFreezeMs)) seen.afterFreezeMs = performance.now() - seen.frozenAt;
      return say(label, "granted", `token ${bold(report.token)}, waited ${report.waitedMs.toFixed(0)} ms`);
    case "released":
      return say(
        label,
        "released",
        report.outcome === "released"
          ? `held for ${report.heldMs.toFixed(0)} ms`
          : `its entry was ${report.outcome}`,
      );
    case "lost":
      return say(label, "lost", `${report.why}: it was not renewed for its ttl of ${ttlMs} ms`);
    case "awake":
      return say(label, "wakes up", `and wants to write. lock.held is ${report.held}, but it does not ask`);
    case "told":
      seen.endedWith = report.code;
      return say(
        label,
        "told",
        `its request rejects with ${report.code}: the section was not exclusive to its end`,
      );
    case "read":
      return worker.reply(ledger.sum);
    case "write":
      return write(worker, BigInt(report.token), report.sum);
  }
}

/** @param {Worker} worker @param {bigint} token @param {number} sum */
function write(worker, token, sum) {
  const refusal = ledger.write(token, sum);
  if (refusal === null) {
    seen.accepted += 1;
    say(worker.label, "wrote", `the sum is ${ledger.sum}`);
  } else {
    seen.refused += 1;
    say(worker.label, "refused", `by the ledger: ${refusal}`);
  }
  worker.reply(refusal ?? "written");
}

/** @param {string} store */
async function tour(store) {
  print(`${bold("holdfast")}: four processes, one lock, two accidents`);
  print(dim(`The lock is in a SQLite file: ${store}`));
  const workers = ["w1", "w2", "w3", "w4"].map((label) => new Worker(label, store));
  const [w1, w2, w3, w4] = workers;
  if (!w1 || !w2 || !w3 || !w4) throw new Error("a worker is missing");
  try {
    await Promise.all(workers.map((worker) => worker.until("ready")));
    for (const { label, pid } of workers) say(label, "started", `process ${pid}`);

    title("1. All want the lock at once: one holds it, the others stand in line");
    const turns = workers.map((worker) => worker.does("add"));
    await pause(workMs / 2);
    await showLine(store);
    await Promise.all(turns);

    title("2. w2 is killed with SIGKILL while it holds: the next one need not wait for the ttl");
    void w2.does("hold");
    await w2.until("holding");
    const afterKill = w3.does("add");
    await pause(workMs);
    seen.killedAt = performance.now();
    seen.afterKillMs = Number.NaN;
    w2.child.kill("SIGKILL");
    say("w2", "killed", `process ${w2.pid}: nobody cleans up after it`);
    await afterKill;

    title(
      `3. w3 is frozen with SIGSTOP while it holds: the lock is free when its ttl of ${ttlMs} ms has passed`,
    );
    const late = w3.does("overstay");
    await w3.until("holding");
    w3.child.kill("SIGSTOP");
    seen.frozenAt = performance.now();
    seen.afterFreezeMs = Number.NaN;
    say("w3", "frozen", "it sees nothing and renews nothing");
    await w4.does("add");
    w3.child.kill("SIGCONT");
    w3.reply("go on");
    await late;

    title("4. Life goes on");
    await Promise.all([w1.does("add"), w3.does("add")]);
    await Promise.all([w1, w3, w4].map((worker) => worker.does("leave")));
  } finally {
    for (const { child } of workers) child.kill("SIGKILL");
  }
}

/** Looks from outside: any client of the store can, without a lock of its own. */
async function showLine(/** @type {string} */ store) {
  const observer = await connect(store);
  const { held, pending } = await observer.query();
  await observer.close();
  say("", "query", `held by ${labelsOf(held)}; in line: ${labelsOf(pending)}`);
}

/** @type {(infos: import("holdfast").LockInfo[]) => string} */
function labelsOf(infos) {
  return infos.map(({ owner }) => `${owner.label} (process ${owner.pid})`).join(", ");
}

/** Says what was seen, and whether that is what the tour promised. */
function summarise() {
  const { tokens, accepted, refused, afterKillMs, afterFreezeMs, endedWith } = seen;
  const rising = tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? token));
  /** @type {[boolean, string][]} */
  const findings = [
    [rising && tokens.length === 10, `${tokens.length} grants, each with a higher token than the one before`],
    [
      afterKillMs < ttlMs,
      `killed: the next one held ${afterKillMs.toFixed(0)} ms later, long before the ttl`,
    ],
    [
      afterFreezeMs > ttlMs / 2,
      `frozen: the next one held ${afterFreezeMs.toFixed(0)} ms later, after the ttl`,
    ],
    [refused === 1, `stale write: ${refused} came with an old token and was refused`],
    [endedWith === "LOCK_LOST", `the process that lost its lock was told: ${endedWith}`],
    [
      accepted === 8 && ledger.sum === 8,
      `${accepted} accepted writes made a sum of ${ledger.sum}: no update was lost`,
    ],
  ];
  title("What you saw");
  for (const [asTold, text] of findings) print(`  ${asTold ? green("✓") : red("✗")} ${text}`);
  title("Where to go next");
  print("  README.md            ten lines to start with");
  print("  npx holdfast --help  the same locks around any program, from the shell");
  print("  docs/guide.md        all that a LockManager can do");
  print("  docs/guarantees.md   what a lock with a ttl can promise, and what it cannot");
  print("  examples/            small programs, each to be run with node");
  return findings.every(([asTold]) => asTold);
}

const bound = setTimeout(() => {
  print(red(`The tour has not ended within ${longestMs} ms.`));
  process.exit(1);
}, longestMs);
const folder = await mkdtemp(join(tmpdir(), "holdfast-tour-"));
try {
  await tour(`sqlite:${join(folder, "locks.db")}`);
} finally {
  await rm(folder, { recursive: true, force: true });
  clearTimeout(bound);
}
process.exitCode = summarise() ? 0 : 1;
