/** A proxy in front of one ZooKeeper server that knows where messages end: it can swallow all answers but pongs, and let messages come one by one. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { FrameSplitter } from "../../src/backends/zookeeper/client/frames.ts";
import { xids } from "../../src/backends/zookeeper/client/wire.ts";

/** A proxy on the loopback address. */
export class FrameProxy {
  /** Of what the server says, only pongs get through. */
  mute = false;
  /** What is swallowed ends its connection, unless it is the first message, the welcome. */
  endWhenMute = false;
  /** How many connections there were. */
  accepted = 0;
  /** New connections are reset. */
  refuse = false;
  /** How many welcomes from now on say that the session is over, as those of servers do that have ended it. */
  farewells = 0;
  /** How long after one message of the server the next is let through, in milliseconds. */
  gapMs = 0;
  readonly #clients = new Set<Socket>();
  readonly #server: Server;

  private constructor(targetPort: number) {
    this.#server = createServer((client) => this.#accept(client, targetPort));
  }

  static async start(targetPort: number): Promise<FrameProxy> {
    const proxy = new FrameProxy(targetPort);
    await new Promise<void>((resolve) => void proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  resetAll(): void {
    for (const client of this.#clients) client.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.resetAll();
    this.#server.close();
  }

  #accept(client: Socket, targetPort: number): void {
    if (this.refuse) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(targetPort, "127.0.0.1");
    const splitter = new FrameSplitter();
    this.#clients.add(client);
    this.accepted += 1;
    let welcomed = false;
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.setNoDelay(true);
      one.on("error", () => {}).on("close", () => other.destroy());
    }
    client.on("close", () => this.#clients.delete(client));
    client.on("data", (chunk) => server.write(chunk));
    let dueAt = 0;
    server.on("data", (chunk) => {
      for (const frame of splitter.push(chunk)) {
        const isWelcome = !welcomed;
        welcomed = true;
        if (this.mute && !isWelcome && frame.readInt32BE(0) !== xids.ping) {
          if (this.endWhenMute) client.resetAndDestroy();
          continue;
        }
        // Its length, in milliseconds, and its number.
        if (isWelcome && this.farewells-- > 0) frame.fill(0, 4, 16);
        const length = Buffer.alloc(4);
        length.writeInt32BE(frame.length);
        const message = Buffer.concat([length, frame]);
        const now = performance.now();
        dueAt = Math.max(now, dueAt + this.gapMs);
        if (dueAt > now) setTimeout(() => client.write(message), dueAt - now);
        else client.write(message);
      }
    });
  }
}
