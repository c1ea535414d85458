/** Experiments e1 to e4: clients of etcd and ZooKeeper that stand still, and an etcd leader that does. */
import { startEtcd } from "../../dist/verify/servers/etcd.js";
import { Dice } from "../../dist/verify/simulate/dice.js";
import { startZooKeeper } from "../../dist/verify/servers/zookeeper.js";
import { pauseInSection } from "./pauses.mjs";
import { inLanes, sleep, Stage } from "./stage.mjs";

/** @typedef {import("./report.mjs").Row} Row */

/**
 * @param {import("./report.mjs").Context} context
 * @param {string} id
 * @param {string} url
 * @param {string} label
 * @returns {Promise<Row>}
 */
async function pauses({ rounds }, id, url, label) {
  const ttlMs = 1_000;
  const stage = await Stage.open();
  const setting = { url, ttlMs, renew: true };
  let believed = 0;
  await inLanes({
    rounds,
    lanes: 10,
    open: async () => ({
      c1: await stage.actor("holdfast", setting),
      c2: await stage.actor("holdfast", setting),
    }),
    round: async (lane, round) => {
      if (await pauseInSection(stage, lane, `${id}-${round}`, { ttlMs, fenced: true, hang: false }))
        believed += 1;
    },
  });
  const shown = await stage.close(id);
  return { ...shown, label, rounds, ttlMs, extra: { "C1 believed on waking": believed } };
}

const urlOfEtcd = (/** @type {readonly { port: number }[]} */ nodes) =>
  `etcd://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;

/** e1: etcd, the holder is stopped. @param {import("./report.mjs").Context} context */
export async function e1(context) {
  const nodes = await startEtcd(3);
  try {
    return [await pauses(context, "e1", urlOfEtcd(nodes), "holdfast on etcd")];
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
  }
}

/** e2: ZooKeeper, the holder is stopped. @param {import("./report.mjs").Context} context */
export async function e2(context) {
  const servers = await startZooKeeper(3);
  const url = `zookeeper://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  try {
    return [await pauses(context, "e2", url, "holdfast on ZooKeeper")];
  } finally {
    await Promise.all(servers.map((server) => server.remove()));
  }
}

/**
 * e3: five clients read, think and write under one lock while one after the other is stopped for longer than the ttl.
 * They write blindly: what was lost is what the lock alone does not prevent.
 *
 * @param {import("./report.mjs").Context} context
 */
export async function e3({ rounds, seed }) {
  const dice = new Dice(seed, 3);
  const nodes = await startEtcd(3);
  const ttlMs = 1_000;
  const stage = await Stage.open();
  const acknowledged = { fenced: 0, unfenced: 0 };
  try {
    const setting = { url: urlOfEtcd(nodes), ttlMs, renew: true };
    const actors = await Promise.all(Array.from({ length: 5 }, () => stage.actor("holdfast", setting)));
    let [updates, next] = [0, 0];
    const isOver = () => updates >= rounds;
    const work = async (/** @type {import("./stage.mjs").Actor} */ actor, /** @type {number} */ index) => {
      while (!isOver()) {
        const proc = `c${index + 1}.${++next}`;
        const name = "e3-set";
        const got = await stage.take(actor, proc, name, { waitMs: 30_000 });
        if (got === null) continue;
        const at = await actor.ask("read", name, got.token);
        await sleep(dice.between(50, 300));
        const write = { name, token: got.token, attempt: got.attempt, value: proc };
        const wrote = await actor.ask("write", name, write, at);
        if (wrote.fenced === true) acknowledged.fenced += 1;
        if (wrote.unfenced === true) acknowledged.unfenced += 1;
        updates += 1;
        await stage.leave(actor, proc, name);
      }
    };
    const nemesis = async () => {
      for (let turn = 0; !isOver(); turn += 1) {
        const actor = actors[turn % actors.length];
        if (actor === undefined) continue;
        await sleep(1_000);
        actor.stop();
        await sleep(2_500);
        actor.goOn();
      }
    };
    await Promise.all([...actors.map(work), nemesis()]);
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
  }
  const shown = await stage.close("e3");
  const share = (/** @type {number} */ lost, /** @type {number} */ of) =>
    `${lost} of ${of} (${((100 * lost) / Math.max(1, of)).toFixed(1)} %)`;
  const extra = {
    "acknowledged updates lost without the fence": share(shown.lostUnfenced, acknowledged.unfenced),
    "with it": share(shown.lostFenced, acknowledged.fenced),
  };
  return [{ ...shown, label: "holdfast on etcd, 5 clients", rounds, ttlMs, extra }];
}

/**
 * e4: the leader of etcd stands still for longer than the ttl, while one client holds many locks and another waits for each.
 * A round is one lock.
 *
 * @param {import("./report.mjs").Context} context
 */
export async function e4({ rounds }) {
  const names = 20;
  const ttlMs = 1_000;
  const nodes = await startEtcd(3);
  const stage = await Stage.open();
  let [lost, done] = [0, 0];
  try {
    const setting = { url: urlOfEtcd(nodes), ttlMs, renew: true };
    const [c1, c2] = await Promise.all([stage.actor("holdfast", setting), stage.actor("holdfast", setting)]);
    for (let turn = 0; done < rounds; turn += 1) {
      const all = Array.from({ length: Math.min(names, rounds - done) }, (_, index) => `e4-${turn}-${index}`);
      const holds = await Promise.all(all.map((name) => stage.take(c1, "c1", name, { waitMs: 10_000 })));
      const waits = Promise.all(all.map((name) => stage.take(c2, "c2", name, { waitMs: 30_000 })));
      const leaders = await Promise.all(nodes.map((node) => node.leads()));
      const leader = nodes[leaders.indexOf(true)];
      leader?.pause();
      await sleep(2.5 * ttlMs);
      leader?.resume();
      await sleep(ttlMs);
      for (const [index, name] of all.entries()) {
        if (holds[index] === null) continue;
        if ((await c1.ask("lostAt", name)) !== null) lost += 1;
        await stage.leave(c1, "c1", name);
      }
      const granted = await waits;
      for (const [index, name] of all.entries())
        if (granted[index] !== null) await stage.leave(c2, "c2", name);
      done += all.length;
    }
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
  }
  const shown = await stage.close("e4");
  return [
    {
      ...shown,
      label: "holdfast on etcd, 20 locks at a time",
      rounds: done,
      ttlMs,
      extra: { "locks lost, and told": lost },
    },
  ];
}
