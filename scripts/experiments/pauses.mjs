/** Experiments a1 to a4: a client that stands still, inside its section or before it has read the answer. One Redis. */
import { startRedis } from "../../dist/verify/servers/redis.js";
import { TcpProxy } from "../../dist/verify/servers/tcp-proxy.js";
import { inLanes, sleep, Stage, withoutFence } from "./stage.mjs";

/** @typedef {import("./stage.mjs").Actor} Actor */
/** @typedef {import("./report.mjs").Row} Row */

const lanes = 8;

/**
 * One round in which C1 stands still inside its section while C2 takes the lock and writes; then C1 writes.
 *
 * @param {Stage} stage
 * @param {{ c1: Actor, c2: Actor }} lane
 * @param {string} name
 * @param {{ ttlMs: number, fenced: boolean, hang: boolean }} how
 */
export async function pauseInSection(stage, { c1, c2 }, name, { ttlMs, fenced, hang }) {
  const first = await stage.take(c1, "c1", name, { waitMs: 5_000, number: 1n });
  if (first === null) throw new Error(`${name}: nobody held it, and yet C1 did not get it`);
  const at = await c1.ask("read", name, first.token);
  const places = (/** @type {any} */ found) => ({
    fenced: fenced ? found.fenced : null,
    unfenced: found.unfenced,
  });
  const write = (/** @type {any} */ got, /** @type {string} */ value) => ({
    name,
    token: got.token,
    attempt: got.attempt,
    value,
  });
  if (!hang) c1.stop();
  // Sent now, it is done at once when C1 goes on, or after the hang.
  const late = c1.ask("write", name, write(first, "late"), places(at), hang ? ttlMs * 2.5 : 0);
  const second = await stage.take(c2, "c2", name, { waitMs: 20_000, number: 2n });
  if (second === null) throw new Error(`${name}: C2 never got it`);
  const there = await c2.ask("read", name, second.token);
  await c2.ask("write", name, write(second, "in time"), places(there));
  if (!hang) c1.goOn();
  const { believes, seenAt } = await late;
  if (believes)
    stage.record({ proc: "c1", f: "held", type: "info", attempt: first.attempt, lock: name }, seenAt);
  await stage.leave(c1, "c1", name);
  await stage.leave(c2, "c2", name);
  return believes;
}

/**
 * @param {import("./report.mjs").Context} context
 * @param {string} id
 * @param {{ library: string, renew: boolean, fenced: boolean, hang: boolean, label: string }} variant
 * @returns {Promise<Row>}
 */
async function pauseRow({ rounds }, id, { library, renew, fenced, hang, label }) {
  const ttlMs = hang ? 400 : 300;
  const { server, port } = await startRedis();
  const stage = await Stage.open();
  let believed = 0;
  try {
    const url = `redis://127.0.0.1:${port}`;
    const setting = { url, ttlMs, renew };
    await inLanes({
      rounds,
      lanes,
      open: async () => ({
        c1: await stage.actor(library, setting),
        c2: await stage.actor(library, setting),
      }),
      round: async (lane, round) => {
        if (await pauseInSection(stage, lane, `${id}-${round}`, { ttlMs, fenced, hang })) believed += 1;
      },
    });
  } finally {
    await server.remove();
  }
  const shown = await stage.close(`${id}-${library}${renew ? "-renew" : ""}`);
  const row = { ...shown, label, rounds, ttlMs, extra: { "C1 believed on waking": believed } };
  return fenced ? row : withoutFence(row);
}

const libraries = ["holdfast", "redlock@5", "redis-semaphore"];

/** a1: stopped inside the section, nothing checks tokens. @param {import("./report.mjs").Context} context */
export async function a1(context) {
  const rows = [];
  for (const library of libraries) {
    const variant = { library, renew: library === "holdfast", fenced: false, hang: false, label: library };
    rows.push(await pauseRow(context, "a1", variant));
  }
  return rows;
}

/** a2: the same, and the resource checks tokens. @param {import("./report.mjs").Context} context */
export async function a2(context) {
  const variant = { library: "holdfast", renew: true, fenced: true, hang: false, label: "holdfast" };
  return [await pauseRow(context, "a2", variant)];
}

/** a3: the event loop is blocked instead, with the watchdog and without. @param {import("./report.mjs").Context} context */
export async function a3(context) {
  const rows = [];
  for (const library of libraries) {
    for (const renew of [true, false]) {
      const label = `${library}, watchdog ${renew ? "on" : "off"}`;
      const fenced = library === "holdfast";
      rows.push(await pauseRow(context, "a3", { library, renew, fenced, hang: true, label }));
    }
  }
  return rows;
}

/**
 * a4: stopped between the request and its answer, which waits in the socket while the ttl passes and another is granted.
 * @param {import("./report.mjs").Context} context
 */
export async function a4({ rounds }) {
  /** @type {Row[]} */
  const rows = [];
  for (const library of libraries) {
    const ttlMs = 300;
    const { server, port } = await startRedis();
    const stage = await Stage.open();
    let expired = 0;
    try {
      await inLanes({
        rounds,
        lanes,
        open: async () => {
          const proxy = await TcpProxy.start(port);
          const url = `redis://127.0.0.1:${port}`;
          const c1 = await stage.actor(library, {
            url: `redis://127.0.0.1:${proxy.port}`,
            ttlMs,
            renew: false,
          });
          return { proxy, c1, c2: await stage.actor(library, { url, ttlMs, renew: false }) };
        },
        round: async ({ proxy, c1, c2 }, round) => {
          const name = `a4-${round}`;
          proxy.down.delayMs = 120;
          const asked = stage.take(c1, "c1", name, {
            waitMs: library === "holdfast" ? ttlMs / 2 : 0,
            number: 1n,
          });
          await sleep(60);
          c1.stop();
          await sleep(ttlMs);
          proxy.down.delayMs = 0;
          const second = await stage.take(c2, "c2", name, { waitMs: 5_000, number: 2n });
          c1.goOn();
          const first = await asked;
          // C2 has not released: whoever is told that it holds now is told so wrongly.
          if (first !== null && second !== null) expired += 1;
          await stage.leave(c2, "c2", name);
          if (first !== null) await stage.leave(c1, "c1", name);
        },
        close: ({ proxy }) => proxy.close(),
      });
    } finally {
      await server.remove();
    }
    const shown = await stage.close(`a4-${library}`);
    // Nobody writes here: the grant itself is the matter.
    const { staleUnfenced: _none, ...row } = withoutFence({
      ...shown,
      label: library,
      rounds,
      ttlMs,
      extra: {},
    });
    rows.push({ ...row, extra: { "expired grants": expired } });
  }
  return rows;
}
