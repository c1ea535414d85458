/** Experiments e1 to e4: clients of etcd and ZooKeeper that stand still, and an etcd leader that does. */
import { startEtcd } from "../../dist/verify/servers/etcd.js";
import { Dice } from "../../dist/verify/simulate/dice.js";
import { startZooKeeper } from "../../dist/verify/servers/zookeeper.js";
import { withBound } from "./bounds.mjs";
import { pauseInSection } from "./pauses.mjs";
import { inLanes, sleep, Stage } from "./stage.mjs";

/** @typedef {import("./actors.mjs").Actor} Actor */
/** @typedef {import("./report.mjs").Context} Context */
/** @typedef {import("./report.mjs").Row} Row */
/** @typedef {import("./stage.mjs").Hold} Hold */

/**
 * @param {Context} context
 * @param {string} id
 * @param {{ url: string, label: string, ttlMs: number, pauseMs: number, alsoWrite?: (hold: Hold, value: string) => Promise<void> }} variant
 * @returns {Promise<Row>}
 */
async function pauses({ rounds }, id, { url, label, ttlMs, pauseMs, alsoWrite }) {
  const stage = await Stage.open();
  const setting = { url, ttlMs, renew: true };
  const how = { pauseMs, hang: false, ...(alsoWrite === undefined ? {} : { alsoWrite }) };
  let believed = 0;
  await inLanes({
    rounds,
    lanes: 10,
    open: async () => ({
      c1: await stage.actor("holdfast", setting),
      c2: await stage.actor("holdfast", setting),
    }),
    round: async (lane, round) => {
      if (await pauseInSection(stage, lane, `${id}-${round}`, how)) believed += 1;
    },
  });
  const { counts } = await stage.close(id);
  return { ...counts, label, rounds, ttlMs, extra: { "C1 believed on waking": withBound(believed, rounds) } };
}

const urlOfEtcd = (/** @type {readonly { port: number }[]} */ nodes) =>
  `etcd://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;

/** e1: etcd, the holder is stopped. It also writes to the same etcd, in a transaction that compares who owns the lock. @param {Context} context */
export async function e1(context) {
  const nodes = await startEtcd(3);
  let [stale, refused, falsely] = [0, 0, 0];
  const endpoint = nodes[0]?.endpoint;
  const alsoWrite = async (/** @type {Hold} */ { actor, name }, /** @type {string} */ value) => {
    const { done, believes } = await actor.ask("put", name, endpoint, value);
    if (done && value === "late") stale += 1;
    if (!done) refused += 1;
    if (!done && believes) falsely += 1;
  };
  try {
    const url = urlOfEtcd(nodes);
    const variant = { url, label: "holdfast on etcd", ttlMs: 2_000, pauseMs: 5_000, alsoWrite };
    const row = await pauses(context, "e1", variant);
    const { rounds } = row;
    const extra = {
      ...row.extra,
      "stale writes accepted by etcd itself, with `ownershipGuard`": withBound(stale, rounds),
      "refused by it": refused,
      "false rejects by it": withBound(falsely, rounds),
    };
    return [{ ...row, extra }];
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
  }
}

/** e2: ZooKeeper, the holder is stopped. @param {Context} context */
export async function e2(context) {
  const servers = await startZooKeeper(3);
  const url = `zookeeper://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  try {
    const variant = { url, label: "holdfast on ZooKeeper", ttlMs: 4_000, pauseMs: 10_000 };
    return [await pauses(context, "e2", variant)];
  } finally {
    await Promise.all(servers.map((server) => server.remove()));
  }
}

/** As Jepsen did it: the lease, how long a client thinks at most, from one pause to the next; and how long that lasts. */
const lockSet = { ttlMs: 2_000, thoughtMs: 2_000, everyMs: 5_000, pauseMs: 4_000, clients: 5, sets: 5 };

/**
 * e3: five clients read, think and write under one lock while one after the other is stopped for longer than the ttl.
 * They write blindly: what was lost is what the lock alone does not prevent. Several such sets at a time; a round is an update.
 *
 * @param {Context} context
 */
export async function e3({ rounds, seed }) {
  const { ttlMs, thoughtMs, everyMs, pauseMs, clients, sets } = lockSet;
  const nodes = await startEtcd(3);
  const stage = await Stage.open();
  const acknowledged = { fenced: 0, unfenced: 0 };
  let [updates, next] = [0, 0];
  const isOver = () => updates >= rounds;

  const work = async (/** @type {Actor} */ actor, /** @type {string} */ name, /** @type {Dice} */ dice) => {
    while (!isOver()) {
      const proc = `${name}.c${++next}`;
      const hold = await stage.take(actor, proc, name, { waitMs: 60_000 });
      if (hold === null) continue;
      const at = await stage.read(hold);
      await sleep(dice.between(0, thoughtMs));
      const wrote = await stage.write(hold, proc, at);
      if (wrote.fenced === true) acknowledged.fenced += 1;
      if (wrote.unfenced === true) acknowledged.unfenced += 1;
      updates += 1;
      await stage.leave(hold);
    }
  };

  const disturb = async (/** @type {readonly Actor[]} */ actors, /** @type {Dice} */ dice) => {
    while (!isOver()) {
      await sleep(everyMs - pauseMs);
      const actor = actors[dice.whole(0, actors.length - 1)];
      actor?.stop();
      await sleep(pauseMs);
      actor?.goOn();
    }
  };

  try {
    const setting = { url: urlOfEtcd(nodes), ttlMs, renew: true };
    const all = Array.from({ length: sets }, async (_, set) => {
      const dice = new Dice(seed, 3 + set);
      const actors = await Promise.all(
        Array.from({ length: clients }, () => stage.actor("holdfast", setting)),
      );
      await Promise.all([...actors.map((actor) => work(actor, `e3-${set}`, dice)), disturb(actors, dice)]);
    });
    await Promise.all(all);
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
  }
  const { counts, lost } = await stage.close("e3");
  const share = (/** @type {number} */ count, /** @type {number} */ of) =>
    `${withBound(count, of)} of ${of}, ${((100 * count) / Math.max(1, of)).toFixed(1)} %`;
  const extra = {
    "acknowledged updates lost without the fence": share(lost.unfenced, acknowledged.unfenced),
    "with it": share(lost.fenced, acknowledged.fenced),
  };
  return [{ ...counts, label: `holdfast on etcd, ${clients} clients`, rounds: updates, ttlMs, extra }];
}

/**
 * e4: the leader of etcd stands still for longer than the ttl, while one client holds many locks and another waits for each.
 * Both write when it goes on: who holds, if it says that it does, and who is granted. A round is one lock.
 *
 * @param {Context} context
 */
export async function e4({ rounds }) {
  const names = 20;
  const ttlMs = 2_000;
  const nodes = await startEtcd(3);
  const stage = await Stage.open();
  let [lost, refused, done] = [0, 0, 0];
  try {
    const setting = { url: urlOfEtcd(nodes), ttlMs, renew: true };
    const [c1, c2] = [await stage.actor("holdfast", setting), await stage.actor("holdfast", setting)];
    for (let turn = 0; done < rounds; turn += 1) {
      const all = Array.from({ length: Math.min(names, rounds - done) }, (_, index) => `e4-${turn}-${index}`);
      const holds = await Promise.all(all.map((name) => stage.take(c1, "c1", name, { waitMs: 10_000 })));
      const next = all.map(async (name) => {
        const hold = await stage.take(c2, "c2", name, { waitMs: 60_000 });
        if (hold === null) throw new Error(`${name}: C2 never got it`);
        await stage.readAndWrite(hold, "second");
        return hold;
      });
      const leaders = await Promise.all(nodes.map((node) => node.leads()));
      const leader = nodes[leaders.indexOf(true)];
      leader?.pause();
      await sleep(2.5 * ttlMs);
      leader?.resume();
      await sleep(ttlMs);
      for (const hold of holds) {
        if (hold === null) refused += 1;
        else {
          await stage.readAndWrite(hold, "first", { ifHeld: true });
          if (await stage.leave(hold)) lost += 1;
        }
      }
      for (const hold of await Promise.all(next)) await stage.leave(hold);
      done += all.length;
    }
  } finally {
    await Promise.all(nodes.map((node) => node.remove()));
  }
  const { counts } = await stage.close("e4");
  const extra = { "C1 refused": refused, "locks lost, and told": withBound(lost, done) };
  return [{ ...counts, label: `holdfast on etcd, ${names} locks at a time`, rounds: done, ttlMs, extra }];
}
