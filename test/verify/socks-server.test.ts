/** The SOCKS server that leads servers through proxies: byte by byte or at once, to where it has a way, and to nowhere else. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SocksServer } from "../../src/verify/servers/socks-server.ts";
import { TcpProxy } from "../../src/verify/servers/tcp-proxy.ts";

let server: Server;
let proxy: TcpProxy;
let socks: SocksServer;
let client: Socket;
let heard: number[] = [];

beforeEach(async () => {
  server = createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  proxy = new TcpProxy({ host: "127.0.0.1", port });
  socks = await SocksServer.start(new Map([["192.0.2.7:258", proxy]]));
  heard = [];
  client = connect(Number(new URL(socks.url).port), "127.0.0.1").setNoDelay(true);
  client.on("error", () => {}).on("data", (chunk) => heard.push(...chunk));
});

afterEach(async () => {
  client.destroy();
  await proxy.close();
  await socks.close();
  await new Promise((resolve) => server.close(resolve));
});

const wish = (host: number): readonly number[] => [5, 1, 0, 1, 192, 0, 2, host, 1, 2];
const answer = (code: number): readonly number[] => [5, code, 0, 1, 0, 0, 0, 0, 0, 0];

it.each([1, 100])("leads through a proxy whoever says where to, %s bytes at a time", async (size) => {
  const words = [[5, 2, 0, 2], wish(7), [1, 2, 3]];
  const answers = [[5, 0], answer(0), [1, 2, 3]];
  for (const [turn, word] of words.entries()) {
    for (let at = 0; at < word.length; at += size) {
      client.write(Buffer.from(word.slice(at, at + size)));
      await new Promise(setImmediate);
    }
    await expect.poll(() => heard, { interval: 5 }).toEqual(answers.slice(0, turn + 1).flat());
  }
  expect(proxy.connections).toBe(1);
});

it("swallows what comes while the way is cut, and resets it when that is healed", async () => {
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.write(Buffer.of(5, 1, 0, ...wish(7)));
  await expect.poll(() => heard, { interval: 5 }).toEqual([5, 0, ...answer(0)]);
  proxy.blackhole();
  client.write("lost");
  setTimeout(() => proxy.heal(), 50);
  await closed;
  expect(heard).toEqual([5, 0, ...answer(0)]);
});

it("says that it does not reach another address", async () => {
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.write(Buffer.of(5, 1, 0, ...wish(8)));
  await closed;
  expect(heard).toEqual([5, 0, ...answer(4)]);
  expect(proxy.connections).toBe(0);
});
