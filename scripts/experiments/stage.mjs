/** What experiments are made of: actors and resources in processes of their own, rounds in parallel lanes, and the record of it all. */
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkHistory } from "../../dist/verify/checker.js";
import { mergeHistories } from "../../dist/verify/history.js";
import { formatHistory } from "../../dist/verify/history-text.js";
import { startResource } from "../../dist/verify/live/fleet.js";
import { readRecorded } from "../../dist/verify/live/history-file.js";
import { tallyWrites } from "../../dist/verify/live/tally.js";
import { makeFolder, removeFolder } from "../../dist/verify/servers/server-process.js";
import { cache } from "../lib/run.mjs";
import { Actor } from "./actors.mjs";

/** @typedef {import("../../dist/verify/history.js").HistoryEvent} HistoryEvent */
/** @typedef {import("../../dist/verify/history.js").NewEvent} NewEvent */

/**
 * @typedef {object} Hold a lock that somebody got
 * @property {Actor} actor
 * @property {string} proc
 * @property {string} name
 * @property {string} attempt
 * @property {bigint} token
 * @property {boolean} fenced whether its library gave the token
 * @property {number} tookMs
 */

/** @typedef {{ fenced: number | null, unfenced: number | null }} Places */

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
   * @param {string} name
   * @param {{ waitMs: number, number?: bigint }} how `number`: what stands for a token where the library has none
   * @returns {Promise<Hold | null>}
   */
  async take(actor, proc, name, { waitMs, number }) {
    const attempt = `${proc}/${name}`;
    const about = { proc, lock: name, attempt, f: /** @type {const} */ ("acquire") };
    const askedAt = process.hrtime.bigint();
    try {
      const got = await actor.ask("acquire", name, waitMs);
      const token = got.token ?? number ?? 0n;
      this.record({ ...about, type: "invoke" }, got.invokedAt);
      const until = got.validUntil === null ? {} : { validUntil: got.validUntil };
      this.record({ ...about, type: "ok", token, ...until }, got.okAt);
      return { actor, proc, name, attempt, token, fenced: got.token !== null, tookMs: got.tookMs };
    } catch (error) {
      this.record({ ...about, type: "invoke" }, askedAt);
      this.record({ ...about, type: "info", detail: String(error) });
      return null;
    }
  }

  /**
   * The same, asking again while it is refused before the wait is over: servers may be away.
   *
   * @param {Actor} actor
   * @param {string} proc
   * @param {string} name
   * @param {{ waitMs: number, number?: bigint }} how
   */
  async takeWithin(actor, proc, name, { waitMs, ...how }) {
    const until = performance.now() + waitMs;
    for (let tries = 1; ; tries += 1) {
      const leftMs = Math.max(1, Math.round(until - performance.now()));
      const hold = await this.take(actor, `${proc}.${tries}`, name, { ...how, waitMs: leftMs });
      if (hold !== null || performance.now() >= until) return hold;
      await sleep(20);
    }
  }

  /**
   * Where the logs of a lock's resources end, for a write that is to follow. What has no token leaves the fenced one alone.
   *
   * @param {Hold} hold
   * @returns {Promise<Places>}
   */
  async read({ actor, name, token, fenced }) {
    const found = await actor.ask("read", name, token);
    return fenced ? found : { ...found, fenced: null };
  }

  /**
   * Lets a holder write.
   *
   * @param {Hold} hold
   * @param {string} value
   * @param {Places} at
   * @param {{ hangMs?: number, ifHeld?: boolean }} [how] its event loop stands still before; it writes only if its library says that it holds
   * @returns {Promise<{ believes: boolean, seenAt: bigint, fenced: boolean | null, unfenced: boolean | null }>}
   */
  write({ actor, name, token, attempt }, value, at, how = {}) {
    return actor.ask("write", name, { name, token, attempt, value }, at, how);
  }

  /** Reads and writes. @param {Hold} hold @param {string} value @param {{ ifHeld?: boolean }} [how] */
  async readAndWrite(hold, value, how) {
    return this.write(hold, value, await this.read(hold), how);
  }

  /** Records what became of a hold, and ends it. Gives whether it was lost before. @param {Hold} hold */
  async leave({ actor, proc, name, attempt }) {
    const about = { proc, lock: name, attempt };
    const { lostAt, renewals } = await actor.ask("story", name);
    for (const { at, validUntil } of renewals) {
      this.record({ ...about, f: "renew", type: "invoke" }, at);
      this.record({ ...about, f: "renew", type: "ok", validUntil }, at);
    }
    if (lostAt !== null) this.record({ ...about, f: "lost", type: "info" }, lostAt);
    this.record({ ...about, f: "release", type: "invoke" });
    await actor.ask("release", name);
    this.record({ ...about, f: "release", type: "info" });
    return lostAt !== null;
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
    const sha256 = await keepHistory(file, formatHistory(events));
    const { fenced, unfenced } = tallyWrites(events);
    // A resource that nobody wrote to says nothing.
    const without = unfenced.accepted === 0 ? {} : { staleUnfenced: unfenced.staleAccepted };
    const { staleAccepted: staleFenced, refused, falseRejects } = fenced;
    const within = fenced.accepted === 0 ? {} : { staleFenced, refused, falseRejects };
    return {
      counts: { doubleGrants: broken("M1"), tokensBack: broken("M2"), ...without, ...within, sha256 },
      lost: { fenced: fenced.lost, unfenced: unfenced.lost },
    };
  }
}

/** Keeps a raw history, and gives its checksum. @param {string} file its name @param {string} text */
export async function keepHistory(file, text) {
  const folder = join(cache, "experiments");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${file}.jsonl`), text);
  return createHash("sha256").update(text).digest("hex");
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
  /** @type {Lane[]} */
  const opened = [];
  // One after the other: processes that all start at once would be late in all that they do.
  for (let lane = 0; lane < Math.min(lanes, rounds); lane += 1) opened.push(await open(lane));
  try {
    await Promise.all(opened.map(work));
  } finally {
    if (isTerminal) process.stderr.write("\r\x1b[K");
    if (close !== undefined) await Promise.all(opened.map((lane) => close(lane)));
  }
}

export const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
