/** Experiments c and d: Redlock on five Redis servers whose clocks jump, or which come back without what they had. */
import { durableRedis } from "../../dist/verify/clusters/redis.js";
import { ClockShim } from "../../dist/verify/servers/clock-shim.js";
import { ask, startRedis } from "../../dist/verify/servers/redis.js";
import { TcpProxy } from "../../dist/verify/servers/tcp-proxy.js";
import { inLanes, sleep, Stage, withoutFence } from "./stage.mjs";

/** @typedef {import("./report.mjs").Row} Row */

const nodes = 5;
const ttlMs = 8_000;

/** Five servers, and two clients that reach each through a proxy of its own. */
class Five {
  /** @type {import("../../dist/verify/servers/redis.js").RedisServer[]} */
  servers = [];
  /** @type {(ClockShim | null)[]} */
  clocks = [];
  /** @type {TcpProxy[]} */
  proxies = [];
  /** @type {import("./stage.mjs").Actor[]} */
  actors = [];

  /**
   * @param {Stage} stage
   * @param {string} library
   * @param {readonly string[]} args
   */
  static async start(stage, library, args) {
    const five = new Five();
    five.clocks = await Promise.all(Array.from({ length: nodes }, () => ClockShim.build()));
    five.servers = await Promise.all(
      five.clocks.map((clock) => startRedis({ args, env: { ...process.env, ...clock?.env } })),
    );
    five.proxies = await Promise.all(five.servers.map(({ port }) => TcpProxy.start(port)));
    const address = (/** @type {{ port: number }} */ { port }) => `127.0.0.1:${port}`;
    const urlOf = (/** @type {readonly { port: number }[]} */ places) =>
      library === "holdfast"
        ? // Without the quarantine of servers that have just started: what it would hide is to be seen here.
          `redlock://${places.map(address).join(",")}?quarantineMs=0`
        : places.map((place) => `redis://${address(place)}`).join(",");
    five.actors = await Promise.all(
      [five.proxies, five.servers].map((places) =>
        stage.actor(library, { url: urlOf(places), ttlMs, renew: false }),
      ),
    );
    return five;
  }

  async reset() {
    for (const proxy of this.proxies) proxy.heal();
    await Promise.all(this.clocks.map(async (clock) => clock?.set(0)));
    await Promise.all(this.servers.map(({ port }) => ask(port, "flushall")));
  }

  async stop() {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await Promise.all(this.servers.map(({ server }) => server.remove()));
    await Promise.all(this.clocks.map(async (clock) => clock?.remove()));
  }
}

/**
 * C1 holds h of five; then something happens to j of these; then C2 asks.
 *
 * @param {import("./report.mjs").Context} context
 * @param {string} id
 * @param {{ library: string, h: number, j: number, args?: readonly string[], label: string, strike: (five: Five, hit: number) => Promise<void>, lanes: number }} cell
 * @returns {Promise<Row>}
 */
async function cellRow({ rounds }, id, { library, h, j, args = [], label, strike, lanes }) {
  const stage = await Stage.open();
  let skipped = 0;
  await inLanes({
    rounds,
    lanes,
    open: () => Five.start(stage, library, args),
    round: async (five, round) => {
      const name = `${id}-${round}`;
      const [c1, c2] = five.actors;
      if (c1 === undefined || c2 === undefined) throw new Error("two clients are needed");
      for (const proxy of five.proxies.slice(h)) {
        proxy.refuse = true;
        proxy.resetAll();
      }
      const first = await stage.take(c1, "c1", name, { waitMs: 0, number: 1n });
      if (first === null) skipped += 1;
      else {
        // A grant is decided by a majority; the rest of the h servers may hear of it a moment later.
        await Promise.all(five.servers.slice(0, h).map((server) => has(server, name)));
        for (let hit = 0; hit < j; hit += 1) await strike(five, hit);
        const second = await stage.take(c2, "c2", name, { waitMs: 1_000, number: 2n });
        const fenced = library === "holdfast";
        await writeBoth(name, fenced, { c1, first }, { c2, second });
        await stage.leave(c1, "c1", name);
        if (second !== null) await stage.leave(c2, "c2", name);
      }
      await five.reset();
      await sleep(60);
    },
    close: (five) => five.stop(),
  });
  const shown = await stage.close(`${id}-${library}-h${h}-j${j}`);
  const row = { ...shown, label, rounds: rounds - skipped, ttlMs, extra: { h: String(h), j: String(j) } };
  return library === "holdfast" ? row : withoutFence(row);
}

/** Waits until a server has a key of a lock, for a second at most. @param {{ port: number }} server @param {string} name */
async function has({ port }, name) {
  for (let tries = 0; tries < 50 && (await ask(port, "keys", `*${name}`)) === ""; tries++) await sleep(20);
}

/**
 * The second writes, then the first.
 * @param {string} name
 * @param {boolean} fenced
 * @param {{ c1: import("./stage.mjs").Actor, first: any }} one
 * @param {{ c2: import("./stage.mjs").Actor, second: any }} two
 */
async function writeBoth(name, fenced, { c1, first }, { c2, second }) {
  if (second === null) return;
  const write = (/** @type {any} */ got, /** @type {string} */ value) => ({
    name,
    token: got.token,
    attempt: got.attempt,
    value,
  });
  const places = (/** @type {any} */ found) => ({
    fenced: fenced ? found.fenced : null,
    unfenced: found.unfenced,
  });
  const at = await c1.ask("read", name, first.token);
  const there = await c2.ask("read", name, second.token);
  await c2.ask("write", name, write(second, "second"), places(there));
  await c1.ask("write", name, write(first, "first"), places(at));
}

const libraries = ["holdfast", "redlock@5"];

/** @type {readonly (readonly [number, number])[]} */
const clockCells = [
  [5, 1],
  [5, 2],
  [5, 3],
  [4, 1],
  [4, 2],
  [3, 1],
];

/** c: the clocks of j servers jump by a minute. @param {import("./report.mjs").Context} context */
export async function c(context) {
  /** @type {Row[]} */
  const rows = [];
  for (const library of libraries) {
    for (const [h, j] of clockCells) {
      const strike = async (/** @type {Five} */ five, /** @type {number} */ hit) =>
        five.clocks[hit]?.set(60_000);
      rows.push(
        await cellRow(context, "c", {
          library,
          h,
          j,
          strike,
          lanes: 2,
          label: `${library}, holds ${h}, ${j} jump`,
        }),
      );
    }
  }
  return rows;
}

/** @type {readonly { h: number, j: number, durable: boolean }[]} */
const restartCells = [
  { h: 3, j: 1, durable: false },
  { h: 5, j: 2, durable: false },
  { h: 5, j: 3, durable: false },
  { h: 3, j: 1, durable: true },
];

/** d: j servers are killed and come back at once, without what they had or with it. @param {import("./report.mjs").Context} context */
export async function d(context) {
  /** @type {Row[]} */
  const rows = [];
  for (const library of libraries) {
    for (const { h, j, durable } of restartCells) {
      const strike = async (/** @type {Five} */ five, /** @type {number} */ hit) => {
        await five.servers[hit]?.server.kill();
        await five.servers[hit]?.server.start();
      };
      const label = `${library}, holds ${h}, ${j} restart${durable ? ", appendfsync always" : ""}`;
      const id = durable ? "d-durable" : "d";
      rows.push(
        await cellRow(context, id, {
          library,
          h,
          j,
          strike,
          lanes: 3,
          label,
          args: durable ? durableRedis : [],
        }),
      );
    }
  }
  return rows;
}
