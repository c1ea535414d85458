/**
 * npm start: the tour. Four workers compete for one lock, one of them is cut off while it holds, another takes over, and
 * the resource refuses the late write. Ends by itself; exit code 1 if it did not go as told. Needs dist.
 */
import { setTimeout as pause } from "node:timers/promises";
import { compose, connect, LockError } from "holdfast";
import { memoryBackend } from "holdfast/memory";
import { bold, dim, green, listen, print, red, say, title } from "./lib/live-log.mjs";

/** @typedef {{ severed: boolean, layer: import("holdfast").Layer }} Wire */
/** @typedef {{ label: string, wire: Wire, locks: import("holdfast").LockManager }} Worker */

const lockName = "ledger";
const ttlMs = 1_500;
const workMs = 300;
const longestMs = 14_000;

/** What the summary speaks of, as it was seen. */
const seen = {
  /** @type {bigint[]} */
  tokens: [],
  /** @type {number | null} */
  lostAt: null,
  /** @type {number | null} */
  takenOverAt: null,
  accepted: 0,
  refused: 0,
  endedWith: "nothing",
};

/** A sum that many change, one at a time. It remembers the highest token and refuses every lower one. */
const ledger = {
  sum: 0,
  highestToken: 0n,
  /** @type {(token: bigint, sum: number) => void} */
  write(token, sum) {
    if (token < this.highestToken) {
      const message = `token ${token} is older than ${this.highestToken}`;
      throw new LockError("LOCK_STALE_TOKEN", message, { lock: lockName });
    }
    this.highestToken = token;
    this.sum = sum;
    seen.accepted += 1;
  },
};

/** A connection that can be cut: while it is, calls to the store get no answer at all. */
function cuttableWire() {
  /** @type {<T>(call: () => T) => T | Promise<never>} */
  const through = (call) => (wire.severed ? new Promise(() => {}) : call());
  /** @type {Wire} */
  const wire = {
    severed: false,
    layer: (inner) => ({
      name: inner.name,
      traits: inner.traits,
      append: (queue, entry, signal) => through(() => inner.append(queue, entry, signal)),
      renew: (renewals) => through(() => inner.renew(renewals)),
      remove: (queue, id, evict) => through(() => inner.remove(queue, id, evict)),
      list: (queue) => through(() => inner.list(queue)),
      watch: (queue, self, target, onChange) => through(() => inner.watch(queue, self, target, onChange)),
      close: () => inner.close(),
    }),
  };
  return wire;
}

/** @type {Map<string, string>} the labels of the workers by their client ids */
const labels = new Map();

/** @type {(label: string) => Promise<Worker>} */
async function startWorker(label) {
  const wire = cuttableWire();
  const backend = compose(memoryBackend({ store: "tour" }), wire.layer);
  const locks = await connect(backend, { label, ttl: ttlMs });
  labels.set(locks.clientId, label);
  return { label, wire, locks };
}

/** @type {(worker: Worker) => Promise<void>} reads, takes its time, writes: without the lock, updates would get lost */
function addOne({ label, locks }) {
  return locks.request(lockName, async (lock) => {
    const { sum } = ledger;
    await pause(workMs);
    ledger.write(lock.token, sum + 1);
    say(label, "wrote", `the sum is ${ledger.sum}`);
  });
}

/** @type {(worker: Worker, wakeUp: () => Promise<void>) => Promise<void>} the same, but cut off and frozen */
async function freezeWhileHolding({ label, wire, locks }, wakeUp) {
  try {
    await locks.request(lockName, async (lock) => {
      const { sum } = ledger;
      wire.severed = true;
      say(label, "cut off", "its renewals get no answer, and it is frozen: it looks at nothing");
      await wakeUp();
      wire.severed = false;
      say(label, "wakes up", `and wants to write. lock.held is ${lock.held}, but it forgets to ask`);
      try {
        ledger.write(lock.token, sum + 1);
      } catch (error) {
        if (!(error instanceof LockError) || error.code !== "LOCK_STALE_TOKEN") throw error;
        seen.refused += 1;
        say(label, "refused", `by the ledger: ${error.message}`);
      }
    });
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
    seen.endedWith = error.code;
    say(label, "told", `its request rejects with ${error.code}: the section was not exclusive to its end`);
  }
}

async function tour() {
  print(`${bold("holdfast")}: four workers, one lock, one accident`);
  print(dim("All in this one process: memory is the only store that exists so far."));
  const workers = await Promise.all(["w1", "w2", "w3", "w4"].map(startWorker));
  const [first, second, third, fourth] = workers;
  if (!first || !second || !third || !fourth) throw new Error("a worker is missing");

  title("1. All want the lock at once: one holds it, the others stand in line");
  const turns = workers.map(addOne);
  await pause(workMs / 2);
  await showLine();
  await Promise.all(turns);

  title(
    `2. ${second.label} is cut off while it holds: the lock is free when its ttl of ${ttlMs} ms has passed`,
  );
  const frozen = freezeWhileHolding(second, () => takenOver);
  const takenOver = addOne(third);
  await pause(workMs);
  const busy = await fourth.locks.tryAcquire(lockName);
  say(
    fourth.label,
    "asks",
    `tryAcquire gives ${busy === null ? "null: busy is a value, no error" : "a lock"}`,
  );
  await Promise.all([frozen, takenOver]);

  title("3. Life goes on");
  await Promise.all([second, fourth].map(addOne));
  await Promise.all(workers.map(({ locks }) => locks.close()));
}

/** Looks from outside: any client of the store can, without a lock of its own. */
async function showLine() {
  const observer = await connect("memory:tour");
  const { held, pending } = await observer.query();
  await observer.close();
  say("", "query", `held by ${labelsOf(held)}; in line: ${labelsOf(pending)}`);
}

/** @type {(infos: import("holdfast").LockInfo[]) => string} */
function labelsOf(infos) {
  return infos.map(({ owner }) => owner.label).join(", ");
}

function tellWhatHappens() {
  listen("grant", ({ clientId, token, waitedMs }) => {
    seen.tokens.push(token);
    if (seen.lostAt !== null) seen.takenOverAt ??= performance.now();
    say(labels.get(clientId) ?? "", "granted", `token ${bold(`${token}`)}, waited ${waitedMs.toFixed(0)} ms`);
  });
  listen("release", ({ clientId, outcome, heldMs }) => {
    const text = outcome === "released" ? `held for ${heldMs.toFixed(0)} ms` : `its entry was ${outcome}`;
    say(labels.get(clientId) ?? "", "released", text);
  });
  listen("lost", ({ clientId, why, heldMs }) => {
    seen.lostAt = performance.now();
    say(
      labels.get(clientId) ?? "",
      "lost",
      `${why} after ${heldMs.toFixed(0)} ms: lock.held is false from now on`,
    );
  });
}

/** Says what was seen, and whether that is what the tour promised. */
function summarise() {
  const { tokens, accepted, refused, lostAt, takenOverAt, endedWith } = seen;
  const rising = tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? token));
  const earlierMs = lostAt === null || takenOverAt === null ? Number.NaN : takenOverAt - lostAt;
  /** @type {[boolean, string][]} */
  const findings = [
    [rising && tokens.length === 8, `${tokens.length} grants, each with a higher token than the one before`],
    [
      earlierMs > 0,
      `take-over: the old lock was lost ${earlierMs.toFixed(1)} ms before the next was granted`,
    ],
    [refused === 1, `stale write: ${refused} came with an old token and was refused`],
    [endedWith === "LOCK_LOST", `the worker that lost its lock was told: ${endedWith}`],
    [
      accepted === 7 && ledger.sum === 7,
      `${accepted} accepted writes made a sum of ${ledger.sum}: no update was lost`,
    ],
  ];
  title("What you saw");
  for (const [asTold, text] of findings) print(`  ${asTold ? green("✓") : red("✗")} ${text}`);
  title("Where to go next");
  print("  README.md            ten lines to start with");
  print("  docs/guide.md        all that a LockManager can do");
  print("  docs/guarantees.md   what a lock with a ttl can promise, and what it cannot");
  print("  examples/            small programs, each to be run with node");
  return findings.every(([asTold]) => asTold);
}

// The library's own timers never keep a process alive. This one does, and is the bound of the tour.
const bound = setTimeout(() => {
  print(red(`The tour has not ended within ${longestMs} ms.`));
  process.exit(1);
}, longestMs);
tellWhatHappens();
await tour();
clearTimeout(bound);
process.exitCode = summarise() ? 0 : 1;
