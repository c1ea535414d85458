/** Experiments b1 to b3: a Redis primary dies, and a replica that may lag behind takes its place. */
import { FailoverPair } from "../../dist/verify/clusters/redis.js";
import { inLanes, Stage } from "./stage.mjs";

/** @typedef {import("./report.mjs").Row} Row */

const lanes = 3;
const ttlMs = 4_000;

/**
 * @param {import("./report.mjs").Context} context
 * @param {string} id
 * @param {{ cut: boolean, query: string, label: string }} variant
 * @returns {Promise<Row>}
 */
async function failoverRow({ rounds }, id, { cut, query, label }) {
  const stage = await Stage.open();
  let refused = 0;
  await inLanes({
    rounds,
    lanes,
    open: async () => {
      const pair = await FailoverPair.start({ direct: !cut });
      const setting = { url: `redis://127.0.0.1:${pair.front.port}${query}`, ttlMs, renew: true };
      return { pair, c1: await stage.actor("holdfast", setting), c2: await stage.actor("holdfast", setting) };
    },
    round: async ({ pair, c1, c2 }, round) => {
      const name = `${id}-${round}`;
      if (cut) pair.cut();
      const first = await stage.take(c1, "c1", name, { waitMs: 1_000 });
      if (first === null) refused += 1;
      const at = first === null ? null : await c1.ask("read", name, first.token);
      await pair.promote();
      const second = await stage.take(c2, "c2", name, { waitMs: 1_500 });
      if (second !== null) {
        const there = await c2.ask("read", name, second.token);
        await c2.ask(
          "write",
          name,
          { name, token: second.token, attempt: second.attempt, value: "second" },
          there,
        );
      }
      if (first !== null) {
        await c1.ask("write", name, { name, token: first.token, attempt: first.attempt, value: "first" }, at);
        await stage.leave(c1, "c1", name);
      }
      if (second !== null) await stage.leave(c2, "c2", name);
      await pair.rejoin();
      // The next round begins when both are connected again.
      for (const actor of [c1, c2]) await connectedAgain(actor, `${name}-again`);
    },
    close: ({ pair }) => pair.stop(),
  });
  const shown = await stage.close(id);
  return { ...shown, label, rounds, ttlMs, extra: { "C1 refused": refused } };
}

/** @param {import("./stage.mjs").Actor} actor @param {string} name */
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

/** b1: what the primary confirms does not reach the replica. @param {import("./report.mjs").Context} context */
export async function b1(context) {
  return [await failoverRow(context, "b1", { cut: true, query: "", label: "holdfast, link cut" })];
}

/** b2: the same with a link that works: the race alone. @param {import("./report.mjs").Context} context */
export async function b2(context) {
  return [await failoverRow(context, "b2", { cut: false, query: "", label: "holdfast, link whole" })];
}

const confirmed = "?replicas=1&confirmWithinMs=100";

/** b3: b1 with confirmation by the replica, and what that costs. @param {import("./report.mjs").Context} context */
export async function b3(context) {
  const row = await failoverRow(context, "b3", {
    cut: true,
    query: confirmed,
    label: "holdfast, replicas=1, link cut",
  });
  const [plain, safe] = [await latencies(""), await latencies(confirmed)];
  const extra = { ...row.extra, "p50 / p99 of an acquire": plain, "with replicas=1": safe };
  return [{ ...row, extra }];
}

/** @param {string} query */
async function latencies(query) {
  const pair = await FailoverPair.start();
  const stage = await Stage.open();
  try {
    const url = `redis://127.0.0.1:${pair.front.port}${query}`;
    const actor = await stage.actor("holdfast", { url, ttlMs, renew: false });
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
