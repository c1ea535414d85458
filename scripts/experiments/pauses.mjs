/** Experiments a1 to a4: a client that stands still, inside its section or before it has read the answer. One Redis. */
import { startRedis } from "../../dist/verify/servers/redis.js";
import { TcpProxy } from "../../dist/verify/servers/tcp-proxy.js";
import { withBound } from "./bounds.mjs";
import { inLanes, sleep, Stage } from "./stage.mjs";

/** @typedef {import("./actors.mjs").Actor} Actor */
/** @typedef {import("./report.mjs").Context} Context */
/** @typedef {import("./report.mjs").Row} Row */
/** @typedef {import("./stage.mjs").Hold} Hold */

const lanes = 10;
const ttlMs = 1_000;
const pauseMs = 2_500;

/**
 * @typedef {object} Pause
 * @property {number} pauseMs
 * @property {boolean} hang the event loop stands still, not the process
 * @property {(hold: Hold, value: string) => Promise<unknown>} [alsoWrite] writes elsewhere, too
 */

/**
 * One round in which C1 stands still inside its section while C2 takes the lock and writes; then C1 writes. Gives whether
 * C1's library said on waking that it holds.
 *
 * @param {Stage} stage
 * @param {{ c1: Actor, c2: Actor }} lane
 * @param {string} name
 * @param {Pause} how
 */
export async function pauseInSection(stage, { c1, c2 }, name, { pauseMs: forMs, hang, alsoWrite }) {
  const first = await stage.take(c1, "c1", name, { waitMs: 30_000, number: 1n });
  if (first === null) throw new Error(`${name}: nobody held it, and yet C1 did not get it`);
  const at = await stage.read(first);
  const over = sleep(forMs);
  if (!hang) c1.stop();
  // Sent now, it is done at once when C1 goes on, or after the hang.
  const late = stage.write(first, "late", at, { hangMs: hang ? forMs : 0 });
  const later = alsoWrite?.(first, "late");
  const second = await stage.take(c2, "c2", name, { waitMs: 30_000, number: 2n });
  if (second === null) throw new Error(`${name}: C2 never got it`);
  await stage.readAndWrite(second, "in time");
  await alsoWrite?.(second, "in time");
  await over;
  if (!hang) c1.goOn();
  const { believes, seenAt } = await late;
  await later;
  if (believes)
    stage.record({ proc: "c1", f: "held", type: "info", attempt: first.attempt, lock: name }, seenAt);
  await stage.leave(first);
  await stage.leave(second);
  return believes;
}

/**
 * @param {Context} context
 * @param {string} id
 * @param {{ library: string, renew: boolean, hang: boolean, label: string }} variant
 * @returns {Promise<Row>}
 */
async function pauseRow({ rounds }, id, { library, renew, hang, label }) {
  const { server, port } = await startRedis();
  const stage = await Stage.open();
  let believed = 0;
  try {
    const setting = { url: `redis://127.0.0.1:${port}`, ttlMs, renew };
    await inLanes({
      rounds,
      lanes,
      open: async () => ({
        c1: await stage.actor(library, setting),
        c2: await stage.actor(library, setting),
      }),
      round: async (lane, round) => {
        if (await pauseInSection(stage, lane, `${id}-${round}`, { pauseMs, hang })) believed += 1;
      },
    });
  } finally {
    await server.remove();
  }
  const { counts } = await stage.close(`${id}-${library}${renew ? "-renew" : ""}`);
  return { ...counts, label, rounds, ttlMs, extra: { "C1 believed on waking": withBound(believed, rounds) } };
}

const libraries = ["holdfast", "redlock@5", "redis-semaphore"];

/** a1: stopped inside the section. @param {Context} context */
export async function a1(context) {
  const rows = [];
  for (const library of libraries) {
    if (!context.wants(library)) continue;
    const renew = library === "holdfast";
    rows.push(await pauseRow(context, "a1", { library, renew, hang: false, label: library }));
  }
  return rows;
}

/** a2: the same once more, for what the fence does. @param {Context} context */
export async function a2(context) {
  const variant = { library: "holdfast", renew: true, hang: false, label: "holdfast" };
  return [await pauseRow(context, "a2", variant)];
}

/** a3: the event loop is blocked instead, with the watchdog and without. @param {Context} context */
export async function a3(context) {
  const rows = [];
  for (const library of libraries) {
    for (const renew of [true, false]) {
      const label = `${library}, watchdog ${renew ? "on" : "off"}`;
      if (context.wants(label))
        rows.push(await pauseRow(context, "a3", { library, renew, hang: true, label }));
    }
  }
  return rows;
}

/**
 * a4: stopped between the request and its answer, which waits in the socket while the ttl passes and another is granted.
 * @param {Context} context
 */
export async function a4(context) {
  /** @type {Row[]} */
  const rows = [];
  for (const library of libraries) if (context.wants(library)) rows.push(await answerRow(context, library));
  return rows;
}

/** How long an answer is on its way, and when C1 is stopped meanwhile. */
const answerMs = 120;
const stopAfterMs = 60;

/** @param {Context} context @param {string} library @returns {Promise<Row>} */
async function answerRow({ rounds }, library) {
  const { server, port } = await startRedis();
  const stage = await Stage.open();
  let expired = 0;
  try {
    await inLanes({
      rounds,
      lanes,
      open: async (lane) => {
        const proxy = await TcpProxy.start(port);
        const actorAt = (/** @type {number} */ at) =>
          stage.actor(library, { url: `redis://127.0.0.1:${at}`, ttlMs, renew: false });
        const [c1, c2] = [await actorAt(proxy.port), await actorAt(port)];
        // Scripts are loaded when they are first used: that would be another answer to wait for.
        const early = await stage.take(c1, "c1", `a4-early-${lane}`, { waitMs: 5_000, number: 1n });
        if (early !== null) await stage.leave(early);
        return { proxy, c1, c2 };
      },
      round: async ({ proxy, c1, c2 }, round) => {
        const name = `a4-${round}`;
        proxy.down.delayMs = answerMs;
        // Ours would ask again for as long as it may wait; the others ask once.
        const waitMs = library === "holdfast" ? ttlMs / 2 : 0;
        const asked = stage.take(c1, "c1", name, { waitMs, number: 1n });
        await sleep(stopAfterMs);
        c1.stop();
        await sleep(ttlMs);
        proxy.down.delayMs = 0;
        const second = await stage.take(c2, "c2", name, { waitMs: 5_000, number: 2n });
        if (second === null) throw new Error(`${name}: C2 never got it`);
        await stage.readAndWrite(second, "in time");
        c1.goOn();
        const first = await asked;
        // C2 has not released: whoever is told now that it holds is told so wrongly, and does what it wanted the lock for.
        if (first !== null) {
          expired += 1;
          await stage.readAndWrite(first, "late");
        }
        await stage.leave(second);
        if (first !== null) await stage.leave(first);
      },
      close: ({ proxy }) => proxy.close(),
    });
  } finally {
    await server.remove();
  }
  const { counts } = await stage.close(`a4-${library}`);
  return {
    ...counts,
    label: library,
    rounds,
    ttlMs,
    extra: { "expired grants": withBound(expired, rounds) },
  };
}
