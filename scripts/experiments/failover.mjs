/** Experiments b1 to b3: a Redis primary dies or is cut off, and a replica that may lag behind takes its place. */
import { FailoverPair } from "../../dist/verify/clusters/redis.js";
import { withBound } from "./bounds.mjs";
import { SplitTrio } from "./split-trio.mjs";
import { inLanes, sleep, Stage } from "./stage.mjs";

/** @typedef {import("./actors.mjs").Actor} Actor */
/** @typedef {import("./report.mjs").Context} Context */
/** @typedef {import("./report.mjs").Row} Row */
/** @typedef {import("./stage.mjs").Hold} Hold */

const lanes = 5;
const ttlMs = 4_000;

/**
 * @param {Context} context
 * @param {string} id
 * @param {{ link: "whole" | "cut" | "healed", query: string, label: string }} variant
 * @returns {Promise<Row>}
 */
async function failoverRow({ rounds }, id, { link, query, label }) {
  const stage = await Stage.open();
  let [refused, granted] = [0, 0];
  await inLanes({
    rounds,
    lanes,
    open: async () => {
      const pair = await FailoverPair.start({ direct: link === "whole" });
      const setting = { url: urlOf(pair.front, query), ttlMs, renew: true };
      return { pair, c1: await stage.actor("holdfast", setting), c2: await stage.actor("holdfast", setting) };
    },
    round: async ({ pair, c1, c2 }, round) => {
      const name = `${id}-${link}-${round}`;
      if (link !== "whole") pair.cut();
      if (link === "healed") {
        const early = await stage.take(c1, "c1", `${name}-early`, { waitMs: 1_000 });
        if (early !== null) await stage.leave(early);
        await pair.heal();
      }
      const first = await stage.take(c1, "c1", name, { waitMs: 1_000 });
      if (first === null) refused += 1;
      const second = await bothWrite(stage, first, async () => {
        await pair.promote();
        return stage.take(c2, "c2", name, { waitMs: 1_500 });
      });
      if (second !== null) granted += 1;
      for (const hold of [first, second]) if (hold !== null) await stage.leave(hold);
      await pair.rejoin();
      // The next round begins when both are connected again.
      for (const actor of [c1, c2]) await connectedAgain(actor, `${name}-again`);
    },
    close: ({ pair }) => pair.stop(),
  });
  const { counts } = await stage.close(`${id}-${link}`);
  const extra = { "C1 refused": withBound(refused, rounds), "C2 granted": withBound(granted, rounds) };
  return { ...counts, label, rounds, ttlMs, extra };
}

/** Long enough that C1 believes until its next renewal, and C2 asks before that. */
const splitTtlMs = 8_000;

/**
 * Two replicas: one confirms what C1 gets from the primary, the other has been promoted behind a partition. When that
 * heals, both follow the new primary, and C2 asks there.
 *
 * @param {Context} context
 * @param {string} id
 * @param {string} label
 * @returns {Promise<Row>}
 */
async function splitRow({ rounds }, id, label) {
  const stage = await Stage.open();
  let [refused, granted, told] = [0, 0, 0];
  await inLanes({
    rounds,
    lanes,
    open: async () => {
      const trio = await SplitTrio.start();
      const actorAt = (/** @type {{ port: number }} */ front) =>
        stage.actor("holdfast", { url: urlOf(front, confirmed), ttlMs: splitTtlMs, renew: true });
      return { trio, c1: await actorAt(trio.near), c2: await actorAt(trio.far) };
    },
    round: async ({ trio, c1, c2 }, round) => {
      const name = `${id}-split-${round}`;
      await trio.split();
      const first = await stage.take(c1, "c1", name, { waitMs: 1_000 });
      if (first === null) refused += 1;
      const second = await bothWrite(stage, first, async () => {
        await trio.heal();
        return stage.take(c2, "c2", name, { waitMs: 1_500 });
      });
      if (second !== null) granted += 1;
      if (first !== null && (await isTold(first))) told += 1;
      for (const hold of [first, second]) if (hold !== null) await stage.leave(hold);
      for (const actor of [c1, c2]) await connectedAgain(actor, `${name}-again`);
    },
    close: ({ trio }) => trio.stop(),
  });
  const { counts } = await stage.close(`${id}-split`);
  const extra = {
    "C1 refused": withBound(refused, rounds),
    "C2 granted": withBound(granted, rounds),
    "C1 told of its loss": withBound(told, rounds),
  };
  return { ...counts, label, rounds, ttlMs: splitTtlMs, extra };
}

/**
 * C2 takes the lock and writes; then C1 writes, if it got one and believes. Gives what C2 has.
 *
 * @param {Stage} stage
 * @param {Hold | null} first
 * @param {() => Promise<Hold | null>} takeSecond
 */
async function bothWrite(stage, first, takeSecond) {
  const at = first === null ? null : await stage.read(first);
  const second = await takeSecond();
  if (second !== null) await stage.readAndWrite(second, "second");
  if (first !== null && at !== null) await stage.write(first, "first", at, { ifHeld: true });
  return second;
}

/** @param {{ readonly port: number }} front @param {string} query */
const urlOf = (front, query) => `redis://127.0.0.1:${front.port}${query}`;

/** Whether a holder hears that its lock is lost, while it could still believe. @param {Hold} hold */
async function isTold({ actor, name }) {
  for (let waited = 0; waited < splitTtlMs; waited += 100) {
    if ((await actor.ask("lostAt", name)) !== null) return true;
    await sleep(100);
  }
  return false;
}

/** @param {Actor} actor @param {string} name */
async function connectedAgain(actor, name) {
  for (let tries = 0; tries < 50; tries += 1) {
    try {
      await actor.ask("acquire", name, 200);
      await actor.ask("release", name);
      return;
    } catch {
      // Not yet.
    }
  }
}

/** b1: what the primary confirms does not reach the replica. @param {Context} context */
export async function b1(context) {
  return [await failoverRow(context, "b1", { link: "cut", query: "", label: "holdfast, link cut" })];
}

/** b2: the same with a link that works: the race alone. @param {Context} context */
export async function b2(context) {
  return [await failoverRow(context, "b2", { link: "whole", query: "", label: "holdfast, link whole" })];
}

const confirmed = "?replicas=1&confirmWithinMs=100";

/** b3: b1 with confirmation by a replica, what that costs, and where it does not help. @param {Context} context */
export async function b3(context) {
  /** @type {Row[]} */
  const rows = [];
  for (const link of /** @type {const} */ (["cut", "healed"])) {
    const label = `holdfast, replicas=1, link ${link}`;
    if (!context.wants(label)) continue;
    const row = await failoverRow(context, "b3", { link, query: confirmed, label });
    rows.push(link === "cut" ? { ...row, extra: { ...row.extra, ...(await cost()) } } : row);
  }
  const label = "holdfast, replicas=1, another is promoted";
  if (context.wants(label)) rows.push(await splitRow(context, "b3", label));
  return rows;
}

async function cost() {
  return {
    "p50 / p99 of an acquire": await latencies(""),
    "with replicas=1": await latencies(confirmed),
  };
}

/** @param {string} query */
async function latencies(query) {
  const pair = await FailoverPair.start();
  const stage = await Stage.open();
  try {
    const actor = await stage.actor("holdfast", { url: urlOf(pair.front, query), ttlMs, renew: false });
    /** @type {number[]} */
    const took = [];
    for (let at = 0; at < 300; at += 1) {
      const { tookMs } = await actor.ask("acquire", `latency-${at}`, 1_000);
      await actor.ask("release", `latency-${at}`);
      took.push(tookMs);
    }
    const sorted = took.slice(50).toSorted((a, b) => a - b);
    const part = (/** @type {number} */ share) => (sorted[Math.floor(share * sorted.length)] ?? 0).toFixed(2);
    return `${part(0.5)} / ${part(0.99)} ms`;
  } finally {
    await stage.close(`latency${query === "" ? "" : "-replicas"}`);
    await pair.stop();
  }
}
