/** A SOCKS5 server on loopback for one program that is to reach others through proxies of ours: it knows no way to anywhere else. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { TcpProxy } from "./tcp-proxy.ts";

/** Version 5, no password. */
const welcome = Buffer.of(5, 0);
/** Version 5, then whether the way is open, then an address of which nobody makes use. */
const open = Buffer.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0);
const unreachable = Buffer.of(5, 4, 0, 1, 0, 0, 0, 0, 0, 0);
/** The version, the wish for a connection, a zero, that the address is one of IPv4, the address, the port. */
const wishLength = 10;

/** A server that leads to some addresses, written `192.0.2.1:80`. */
export class SocksServer {
  readonly #ways: ReadonlyMap<string, TcpProxy>;
  readonly #server: Server = createServer((client) => this.#welcome(client));

  constructor(ways: ReadonlyMap<string, TcpProxy>) {
    this.#ways = ways;
  }

  static async start(ways: ReadonlyMap<string, TcpProxy>): Promise<SocksServer> {
    const socks = new SocksServer(ways);
    socks.#server.listen(0, "127.0.0.1");
    await once(socks.#server, "listening");
    return socks;
  }

  /** What programs written in Go, and many others, take as the value of HTTP_PROXY. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("it does not listen");
    return `socks5://127.0.0.1:${address.port}`;
  }

  /** Resolves when the last of those who came through it has gone. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #welcome(client: Socket): void {
    let heard = Buffer.of();
    let welcomed = false;
    const hear = (chunk: Buffer): void => {
      heard = Buffer.concat([heard, chunk]);
      if (!welcomed) {
        // The version, how many ways to log in it knows, and which.
        const [, logins] = heard;
        if (logins === undefined || heard.length < 2 + logins) return;
        heard = heard.subarray(2 + logins);
        welcomed = true;
        client.write(welcome);
      }
      if (heard.length < wishLength) return;
      client.off("data", hear);
      this.#lead(client, heard);
    };
    client.on("error", () => {}).on("data", hear);
  }

  #lead(client: Socket, wish: Buffer): void {
    const way = this.#ways.get(`${wish.subarray(4, 8).join(".")}:${wish.readUInt16BE(8)}`);
    if (way === undefined) {
      client.end(unreachable);
      return;
    }
    client.write(open);
    way.accept(client);
  }
}
