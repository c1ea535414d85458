/** Five Redis servers that know nothing of each other, and two clients of a Redlock on them; what happens to them is left to the experiment. */
import { ClockShim } from "../../dist/verify/servers/clock-shim.js";
import { ask, startRedis } from "../../dist/verify/servers/redis.js";
import { TcpProxy } from "../../dist/verify/servers/tcp-proxy.js";
import { sleep } from "./stage.mjs";

/** @typedef {import("./actors.mjs").Actor} Actor */
/** @typedef {import("../../dist/verify/servers/redis.js").RedisServer} RedisServer */

/**
 * @typedef {object} Setting
 * @property {string} library
 * @property {number} ttlMs
 * @property {readonly string[]} args further arguments of the servers
 * @property {number} quarantineMs for how long a server that has just started does not count: ours alone has that
 */

/** How long connections get to come back, and servers to forget. */
const settleMs = 60;

export class Five {
  /** C1 reaches each server through a proxy of its own, C2 directly. @type {Actor} */
  c1;
  /** @type {Actor} */
  c2;
  /** @type {readonly RedisServer[]} */
  #servers;
  /** @type {readonly TcpProxy[]} */
  #proxies;
  /** @type {readonly (ClockShim | null)[]} */
  #clocks;
  #quarantineMs;

  /**
   * @param {{ c1: Actor, c2: Actor }} clients
   * @param {{ servers: readonly RedisServer[], proxies: readonly TcpProxy[], clocks: readonly (ClockShim | null)[], quarantineMs: number }} parts
   */
  constructor({ c1, c2 }, { servers, proxies, clocks, quarantineMs }) {
    this.c1 = c1;
    this.c2 = c2;
    this.#servers = servers;
    this.#proxies = proxies;
    this.#clocks = clocks;
    this.#quarantineMs = quarantineMs;
  }

  /** @param {import("./stage.mjs").Stage} stage @param {Setting} setting */
  static async start(stage, { library, ttlMs, args, quarantineMs }) {
    const clocks = await Promise.all(Array.from({ length: 5 }, () => ClockShim.build()));
    const servers = await Promise.all(
      clocks.map((clock) => startRedis({ args, env: { ...process.env, ...clock?.env } })),
    );
    const proxies = await Promise.all(servers.map(({ port }) => TcpProxy.start(port)));
    const urlOf = (/** @type {readonly { port: number }[]} */ places) => {
      const hosts = places.map(({ port }) => `127.0.0.1:${port}`);
      if (library !== "holdfast") return hosts.map((host) => `redis://${host}`).join(",");
      return `redlock://${hosts.join(",")}?quarantineMs=${quarantineMs}`;
    };
    const clientOf = (/** @type {readonly { port: number }[]} */ places) =>
      stage.actor(library, { url: urlOf(places), ttlMs, renew: false });
    const clients = { c1: await clientOf(proxies), c2: await clientOf(servers) };
    const five = new Five(clients, { servers, proxies, clocks, quarantineMs });
    await five.reset();
    return five;
  }

  /** C1 reaches the first h only. @param {number} h */
  reach(h) {
    for (const proxy of this.#proxies.slice(h)) {
      proxy.refuse = true;
      proxy.resetAll();
    }
  }

  /** Whether the first h have a lock, and they alone. A grant is decided by a majority: the others may hear of it a moment later. @param {string} name @param {number} h */
  async areHeld(name, h) {
    for (let tries = 0; tries < 50; tries += 1) {
      const found = await Promise.all(this.#servers.map(({ port }) => ask(port, "keys", `*${name}`)));
      if (found.slice(h).some((keys) => keys !== "")) return false;
      if (found.slice(0, h).every((keys) => keys !== "")) return true;
      await sleep(20);
    }
    return false;
  }

  /** The clocks of the first j jump by a minute. @param {number} j */
  async jump(j) {
    await Promise.all(this.#clocks.slice(0, j).map(async (clock) => clock?.set(60_000)));
  }

  /** The first j die. @param {number} j */
  async kill(j) {
    await Promise.all(this.#servers.slice(0, j).map(({ server }) => server.kill()));
  }

  /** They come back. @param {number} j */
  async restart(j) {
    await Promise.all(this.#servers.slice(0, j).map(({ server }) => server.start()));
  }

  /** All is as in the beginning. */
  async reset() {
    for (const proxy of this.#proxies) proxy.heal();
    await Promise.all(this.#clocks.map(async (clock) => clock?.set(0)));
    await Promise.all(this.#servers.map(({ port }) => ask(port, "flushall")));
    await sleep(settleMs + this.#quarantineMs);
  }

  async stop() {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await Promise.all(this.#servers.map(({ server }) => server.remove()));
    await Promise.all(this.#clocks.map(async (clock) => clock?.remove()));
  }
}
