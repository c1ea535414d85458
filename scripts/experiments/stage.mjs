/** What experiments are made of: actors in processes of their own, resources, rounds in parallel lanes, and the record of it all. */
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkHistory } from "../../dist/verify/checker.js";
import { mergeHistories } from "../../dist/verify/history.js";
import { formatHistory } from "../../dist/verify/history-text.js";
import { startResource } from "../../dist/verify/live/fleet.js";
import { readRecorded } from "../../dist/verify/live/history-file.js";
import { tallyWrites } from "../../dist/verify/live/tally.js";
import { endWithUs, makeFolder, removeFolder } from "../../dist/verify/servers/server-process.js";
import { cache } from "../lib/run.mjs";

/** @typedef {import("../../dist/verify/history.js").HistoryEvent} HistoryEvent */
/** @typedef {import("../../dist/verify/history.js").NewEvent} NewEvent */

/** Somebody whom an experiment tells what to do. */
export class Actor {
  /** @type {import("node:child_process").ChildProcess} */
  #child;
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map();
  #calls = 0;

  constructor() {
    const script = fileURLToPath(new URL("actor.mjs", import.meta.url));
    const env = { ...process.env, NODE_NO_WARNINGS: "1" };
    this.#child = fork(script, [], {
      serialization: "advanced",
      env,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#child.on(
      "message",
      (/** @type {{ call: number, value?: unknown, error?: string }} */ { call, value, error }) => {
        const waiting = this.#waiting.get(call);
        this.#waiting.delete(call);
        if (error === undefined) waiting?.resolve(value);
        else waiting?.reject(new Error(error));
      },
    );
    this.#child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the actor has ended"));
    });
    endWithUs(this.#child);
  }

  /**
   * @param {string} what
   * @param {unknown[]} args
   * @returns {Promise<any>}
   */
  ask(what, ...args) {
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#child.send({ call, what, args });
    });
  }

  stop() {
    this.#child.kill("SIGSTOP");
  }

  goOn() {
    this.#child.kill("SIGCONT");
  }

  /** @returns {Promise<void>} */
  end() {
    return new Promise((resolve) => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) return resolve();
      this.#child.once("exit", () => resolve());
      this.#child.kill("SIGKILL");
    });
  }
}

/** Where one row of an experiment happens. */
export class Stage {
  /** @type {HistoryEvent[]} */
  #events = [];
  #folder = "";
  /** @type {import("../../dist/verify/live/fleet.js").LiveResource[]} */
  #resources = [];
  /** @type {Actor[]} */
  #actors = [];

  static async open() {
    const stage = new Stage();
    stage.#folder = await makeFolder("experiment");
    stage.#resources = await Promise.all([
      startResource(stage.#folder, "fenced"),
      startResource(stage.#folder, "unfenced"),
    ]);
    return stage;
  }

  /**
   * An actor with a library and a store.
   * @param {string} library
   * @param {{ url: string, ttlMs: number, renew: boolean }} setting
   */
  async actor(library, setting) {
    const actor = new Actor();
    this.#actors.push(actor);
    const [fenced, unfenced] = this.#resources;
    await actor.ask("open", library, setting, { fenced: fenced?.port, unfenced: unfenced?.port });
    return actor;
  }

  /**
   * @param {NewEvent} event
   * @param {bigint} [t]
   */
  record(event, t = process.hrtime.bigint()) {
    this.#events.push({ i: 0, t, ...event });
  }

  /**
   * Lets an actor take a lock, and records it. Gives null if it did not get it.
   *
   * @param {Actor} actor
   * @param {string} proc
   * @param {string} lock
   * @param {{ waitMs: number, number?: bigint }} how `number`: what stands for a token where the library has none
   */
  async take(actor, proc, lock, { waitMs, number }) {
    const attempt = `${proc}/${lock}`;
    const about = { proc, lock, attempt, f: /** @type {const} */ ("acquire") };
    const askedAt = process.hrtime.bigint();
    try {
      const got = await actor.ask("acquire", lock, waitMs);
      const token = got.token ?? number ?? 0n;
      this.record({ ...about, type: "invoke" }, got.invokedAt);
      const until = got.validUntil === null ? {} : { validUntil: got.validUntil };
      this.record({ ...about, type: "ok", token, ...until }, got.okAt);
      return { ...got, token, attempt };
    } catch (error) {
      this.record({ ...about, type: "invoke" }, askedAt);
      this.record({ ...about, type: "info", detail: String(error) });
      return null;
    }
  }

  /**
   * Records how a hold ended, and ends it.
   * @param {Actor} actor
   * @param {string} proc
   * @param {string} lock
   */
  async leave(actor, proc, lock) {
    const attempt = `${proc}/${lock}`;
    const lostAt = await actor.ask("lostAt", lock);
    if (lostAt !== null) this.record({ proc, lock, attempt, f: "lost", type: "info" }, lostAt);
    this.record({ proc, lock, attempt, f: "release", type: "invoke" });
    await actor.ask("release", lock);
    this.record({ proc, lock, attempt, f: "release", type: "info" });
  }

  /** Ends everything, keeps the raw history, and gives what it shows. @param {string} file its name */
  async close(file) {
    await Promise.all(this.#actors.map((actor) => actor.end()));
    await Promise.all(this.#resources.map(({ connection }) => connection.end()));
    const parts = await Promise.all(
      this.#resources.map(({ file: path }) => readRecorded(path).catch(() => [])),
    );
    await Promise.all(this.#resources.map((resource) => resource.stop()));
    await removeFolder(this.#folder);
    this.record({ proc: "stage", f: "end", type: "info", leaks: {}, pending: 0 });
    const events = mergeHistories(...parts, this.#events);
    const result = checkHistory(events, { invariants: ["M1", "M2", "M3"], limit: 1_000_000 });
    if (result.verdict === "unknown") throw new Error(`${file}: ${result.doubts.join(" ")}`);
    const broken = (/** @type {string} */ id) =>
      result.violations.filter(({ invariant }) => invariant === id).length;
    const text = formatHistory(events);
    const folder = join(cache, "experiments");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${file}.jsonl`), text);
    const writes = tallyWrites(events);
    return {
      doubleGrants: broken("M1"),
      tokensBack: broken("M2"),
      staleUnfenced: writes.unfenced.staleAccepted,
      staleFenced: writes.fenced.staleAccepted,
      refused: writes.fenced.refused,
      falseRejects: writes.fenced.falseRejects,
      lostUnfenced: writes.unfenced.lost,
      lostFenced: writes.fenced.lost,
      sha256: createHash("sha256").update(text).digest("hex"),
    };
  }
}

/**
 * Runs rounds in lanes, each lane one round after the other.
 *
 * @template Lane
 * @param {object} plan
 * @param {number} plan.rounds
 * @param {number} plan.lanes
 * @param {(lane: number) => Promise<Lane>} plan.open
 * @param {(lane: Lane, round: number) => Promise<void>} plan.round
 * @param {(lane: Lane) => Promise<void>} [plan.close]
 */
export async function inLanes({ rounds, lanes, open, round, close }) {
  let next = 0;
  const isTerminal = process.stderr.isTTY;
  const work = async (/** @type {Lane} */ lane) => {
    for (let at = next++; at < rounds; at = next++) {
      await round(lane, at);
      if (isTerminal) process.stderr.write(`\r${at + 1} of ${rounds} rounds `);
    }
  };
  const opened = await Promise.all(Array.from({ length: Math.min(lanes, rounds) }, (_, lane) => open(lane)));
  try {
    await Promise.all(opened.map(work));
  } finally {
    if (isTerminal) process.stderr.write("\r\x1b[K");
    if (close !== undefined) await Promise.all(opened.map((lane) => close(lane)));
  }
}

/** What was shown, without what is about the fence: nobody wrote to the resource that has it. @param {import("./report.mjs").Row} row */
export function withoutFence({ staleFenced: _stale, refused: _refused, falseRejects: _false, ...row }) {
  return row;
}

/** The 95 % upper bound for a rate of which k were seen in n: exact for a binomial, 1 - 0.05^(1/n) for none. */
export function upperBound(/** @type {number} */ k, /** @type {number} */ n) {
  if (n === 0) return 1;
  if (k >= n) return 1;
  let [low, high] = [k / n, 1];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (atMost(k, n, middle) > 0.05) low = middle;
    else high = middle;
  }
  return high;
}

/** The chance of at most k of n. @param {number} k @param {number} n @param {number} p */
function atMost(k, n, p) {
  let [sum, logTerm] = [0, n * Math.log1p(-p)];
  for (let i = 0; i <= k; i += 1) {
    sum += Math.exp(logTerm);
    logTerm += Math.log((n - i) / (i + 1)) + Math.log(p / (1 - p));
  }
  return sum;
}

export const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
