/** A TCP proxy on loopback that breaks connections on command: delays, swallows, cuts, refuses, repeats; it knows no protocol. */
import { connect, createServer, type Server, type Socket } from "node:net";

/** What happens to the bytes of one direction. */
export class Lane {
  delayMs = 0;
  jitterMs = 0;
  /** Bytes vanish; the connection stays open. */
  swallow = false;
}

/** Where a proxy leads. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** One connection through the proxy. */
interface Passage {
  readonly server: Socket;
  /** What the client sent first, which may be how it logs in, and what it sent last. */
  first: Buffer | null;
  last: Buffer | null;
}

/** A proxy in front of one server. */
export class TcpProxy {
  up: Lane = new Lane();
  down: Lane = new Lane();
  /** New connections are reset. */
  refuse = false;
  /** How many requests are let through to the server before the connection that brings the last of them is reset. */
  resetAfter: number | null = null;
  readonly #passages = new Map<Socket, Passage>();
  readonly #server: Server = createServer((client) => this.accept(client));
  #target: Target;
  #port = 0;

  constructor(target: Target) {
    this.#target = target;
  }

  /** Starts it on a free port, or on the given one. A number is a port of the loopback address. */
  static async start(target: number | Target, port = 0): Promise<TcpProxy> {
    const proxy = new TcpProxy(typeof target === "number" ? { host: "127.0.0.1", port: target } : target);
    await proxy.#listen(port);
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#passages.size;
  }

  /** Lets a connection through; also one that came another way than by the port, which then need not be open. */
  accept(client: Socket): void {
    if (this.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target.port, this.#target.host);
    const passage: Passage = { server, first: null, last: null };
    this.#passages.set(client, passage);
    const end = (): void => {
      this.#passages.delete(client);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", () => {}).on("close", end);
    }
    this.#pump(client, server, "up", (chunk) => this.#remember(client, passage, chunk));
    this.#pump(server, client, "down", () => {});
  }

  /** Both directions swallow everything: what a cut cable looks like. */
  blackhole(on = true): void {
    this.up.swallow = on;
    this.down.swallow = on;
  }

  /** Resets all connections that are open. */
  resetAll(): void {
    for (const client of this.#passages.keys()) client.resetAndDestroy();
  }

  /** Leads to another server from now on; open connections are reset. */
  leadTo(target: Target): void {
    this.#target = target;
    this.resetAll();
  }

  /**
   * Sends what each client sent last once more to the server, over a connection of its own; the answers are thrown away.
   * For protocols without a state of the connection but the login. Gives how many it repeated.
   */
  replay(): number {
    let repeated = 0;
    for (const { first, last } of this.#passages.values()) {
      if (first === null || last === null) continue;
      const again = connect(this.#target.port, this.#target.host, () => {
        again.write(first === last ? first : Buffer.concat([first, last]));
        setTimeout(() => again.destroy(), 500).unref();
      });
      again.on("error", () => {}).resume();
      repeated += 1;
    }
    return repeated;
  }

  /** Lets everything through again. What was swallowed stays lost, so open connections are reset. */
  heal(): void {
    this.refuse = false;
    this.resetAfter = null;
    this.up = new Lane();
    this.down = new Lane();
    this.resetAll();
  }

  close(): Promise<void> {
    this.refuse = true;
    this.resetAll();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", () => {
        const address = this.#server.address();
        if (address !== null && typeof address === "object") this.#port = address.port;
        resolve();
      });
    });
  }

  #remember(client: Socket, passage: Passage, chunk: Buffer): void {
    passage.first ??= chunk;
    passage.last = chunk;
    if (this.resetAfter === null) return;
    this.resetAfter -= 1;
    if (this.resetAfter > 0) return;
    this.resetAfter = null;
    // The server has it by then, and the client never learns.
    setTimeout(() => client.resetAndDestroy(), 2);
  }

  #pump(from: Socket, to: Socket, direction: "up" | "down", onSent: (chunk: Buffer) => void): void {
    // One timer for all that waits: two that are due at the same moment may fire in any order, and bytes must not.
    const waiting: { readonly chunk: Buffer; readonly dueAt: number }[] = [];
    const send = (chunk: Buffer): void => {
      if (this[direction].swallow || to.destroyed) return;
      to.write(chunk);
      onSent(chunk);
    };
    const sendDue = (): void => {
      const now = performance.now();
      for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
        if (next.dueAt > now) {
          setTimeout(sendDue, next.dueAt - now);
          return;
        }
        waiting.shift();
        send(next.chunk);
      }
    };
    from.on("data", (chunk) => {
      const { swallow, delayMs, jitterMs } = this[direction];
      if (swallow) return;
      const dueAt = performance.now() + delayMs + Math.random() * jitterMs;
      const [first] = waiting;
      if (first === undefined && delayMs + jitterMs === 0) return send(chunk);
      waiting.push({ chunk, dueAt });
      if (first === undefined) setTimeout(sendDue, dueAt - performance.now());
    });
  }
}
