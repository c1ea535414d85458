/** A TCP proxy on loopback that breaks connections on command: delays, swallows, cuts, refuses; it knows no protocol. */
import { connect, createServer } from "node:net";

/** @typedef {"up" | "down"} Direction up: from the client to the server */

/** What happens to the bytes of one direction. */
class Lane {
  delayMs = 0;
  jitterMs = 0;
  /** Bytes vanish; the connection stays open. */
  swallow = false;
}

/** A proxy in front of one server. */
export class TcpProxy {
  up = new Lane();
  down = new Lane();
  /** New connections are reset. */
  refuse = false;
  /** @type {Set<import("node:net").Socket>} */
  #clients = new Set();
  #server = createServer((client) => this.#accept(client));
  #target;
  #port = 0;

  constructor(/** @type {number} */ targetPort) {
    this.#target = targetPort;
  }

  /** Starts it on a free port, or on the given one. */
  static async start(/** @type {number} */ targetPort, port = 0) {
    const proxy = new TcpProxy(targetPort);
    await proxy.#listen(port);
    return proxy;
  }

  get port() {
    return this.#port;
  }

  /** How many connections are open. */
  get connections() {
    return this.#clients.size;
  }

  /** Both directions swallow everything: what a cut cable looks like. */
  blackhole(on = true) {
    this.up.swallow = on;
    this.down.swallow = on;
  }

  /** Resets all connections that are open. */
  resetAll() {
    for (const client of this.#clients) client.resetAndDestroy();
  }

  /** Lets everything through again. What was swallowed stays lost, so open connections are reset. */
  heal() {
    this.refuse = false;
    this.up = new Lane();
    this.down = new Lane();
    this.resetAll();
  }

  /** @returns {Promise<void>} */
  close() {
    this.resetAll();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  /** @returns {Promise<void>} */
  #listen(/** @type {number} */ port) {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", () => {
        const address = this.#server.address();
        if (address !== null && typeof address === "object") this.#port = address.port;
        resolve();
      });
    });
  }

  #accept(/** @type {import("node:net").Socket} */ client) {
    if (this.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target, "127.0.0.1");
    this.#clients.add(client);
    const end = () => {
      this.#clients.delete(client);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", () => {}).on("close", end);
    }
    this.#pump(client, server, "up");
    this.#pump(server, client, "down");
  }

  /**
   * @param {import("node:net").Socket} from
   * @param {import("node:net").Socket} to
   * @param {Direction} direction
   */
  #pump(from, to, direction) {
    let lastAt = 0;
    from.on("data", (chunk) => {
      const { swallow, delayMs, jitterMs } = this[direction];
      if (swallow) return;
      const now = performance.now();
      // Never before what was sent earlier.
      lastAt = Math.max(lastAt, now + delayMs + Math.random() * jitterMs);
      if (lastAt <= now) to.write(chunk);
      else setTimeout(() => this[direction].swallow || to.destroyed || to.write(chunk), lastAt - now);
    });
  }
}
