/** A Redis primary and two replicas, one of which is promoted behind a partition; whoever asks is left to the experiment. */
import { ask, inStep, quickReplication, replicated, startRedis } from "../../dist/verify/servers/redis.js";
import { TcpProxy } from "../../dist/verify/servers/tcp-proxy.js";

/** @typedef {import("../../dist/verify/servers/redis.js").RedisServer} RedisServer */

export class SplitTrio {
  /** @type {RedisServer} */
  #primary;
  /** On the primary's side of the partition. @type {RedisServer} */
  #beside;
  /** On the other side. @type {RedisServer} */
  #beyond;
  /** Between the primary and the replica beyond. @type {TcpProxy} */
  #link;
  /** Where clients on the primary's side, and those beyond, find their primary. @type {TcpProxy} */
  near;
  /** @type {TcpProxy} */
  far;

  /**
   * @param {readonly RedisServer[]} servers
   * @param {readonly TcpProxy[]} proxies
   */
  constructor([primary, beside, beyond], [link, near, far]) {
    if (!primary || !beside || !beyond || !link || !near || !far) throw new Error("three of each are needed");
    this.#primary = primary;
    this.#beside = beside;
    this.#beyond = beyond;
    this.#link = link;
    this.near = near;
    this.far = far;
  }

  static async start() {
    const servers = await Promise.all([1, 2, 3].map(() => startRedis({ args: quickReplication })));
    const port = servers[0]?.port ?? 0;
    const trio = new SplitTrio(servers, await Promise.all([1, 2, 3].map(() => TcpProxy.start(port))));
    await trio.#follow();
    return trio;
  }

  /** The replica beyond hears nothing more, and is promoted there. */
  async split() {
    this.#link.blackhole();
    await ask(this.#beyond.port, "replicaof", "no", "one");
    this.far.leadTo(at(this.#beyond));
  }

  /** All see each other again: who was promoted last is the primary, and the others give up what they have for what it has. */
  async heal() {
    [this.#primary, this.#beside, this.#beyond] = [this.#beyond, this.#primary, this.#beside];
    await this.#link.close();
    this.#link = await TcpProxy.start(this.#primary.port);
    this.near.leadTo(at(this.#primary));
    await this.#follow();
  }

  async #follow() {
    const { port } = this.#primary;
    await ask(this.#beside.port, "replicaof", "127.0.0.1", String(port));
    await ask(this.#beyond.port, "replicaof", "127.0.0.1", String(this.#link.port));
    await replicated(port, 2);
    await Promise.all([this.#beside, this.#beyond].map((replica) => inStep(port, replica.port)));
  }

  async stop() {
    await Promise.all([this.#link, this.near, this.far].map((proxy) => proxy.close()));
    await Promise.all([this.#primary, this.#beside, this.#beyond].map(({ server }) => server.remove()));
  }
}

const at = (/** @type {RedisServer} */ { port }) => ({ host: "127.0.0.1", port });
