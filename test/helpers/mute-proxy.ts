/** A proxy that passes so many answers of the server on, for each connection, and then falls silent: neither side hears of it. */
import { connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy to a port of this machine. */
export class MuteProxy {
  /** How many pieces of what the server sends are passed on, for connections that are opened from now on. */
  passes: number = Number.POSITIVE_INFINITY;
  /** Of each connection that a client has not closed: how many pieces are still passed on. */
  readonly #clients = new Map<Socket, number>();
  readonly #server: Server;
  #port = 0;

  constructor(target: number) {
    this.#server = createServer((client) => this.#accept(client, target));
  }

  static async start(target: number): Promise<MuteProxy> {
    const proxy = new MuteProxy(target);
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    const address = proxy.#server.address();
    proxy.#port = typeof address === "object" && address !== null ? address.port : 0;
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  /** How many connections clients have not closed. */
  get connections(): number {
    return this.#clients.size;
  }

  /** All connections that are open are silent from now on. */
  mute(): void {
    for (const client of this.#clients.keys()) this.#clients.set(client, 0);
  }

  close(): void {
    this.#server.close();
    for (const client of this.#clients.keys()) client.destroy();
  }

  #accept(client: Socket, target: number): void {
    const server = connect(target, "127.0.0.1");
    this.#clients.set(client, this.passes);
    for (const socket of [client, server]) socket.on("error", () => {});
    client.on("data", (bytes) => server.write(bytes));
    server.on("data", (bytes) => {
      const left = this.#clients.get(client) ?? 0;
      this.#clients.set(client, left - 1);
      if (left > 0) client.write(bytes);
    });
    client.on("close", () => {
      this.#clients.delete(client);
      server.destroy();
    });
    server.on("close", () => {
      if ((this.#clients.get(client) ?? 0) > 0) client.destroy();
    });
  }
}
