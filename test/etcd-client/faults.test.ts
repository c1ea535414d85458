/** The thin client and servers that freeze, die, refuse or answer too late: it notices in time, and says what may have happened. */
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type EtcdNode, freePorts, TcpProxy } from "../../scripts/lib/for-tests.mjs";
import { EtcdClient } from "../../src/backends/etcd/client/client.ts";
import { status } from "../../src/backends/etcd/client/errors.ts";
import * as methods from "../../src/backends/etcd/client/methods.ts";
import type { WatchEnd } from "../../src/backends/etcd/client/watch-stream.ts";
import { startOne } from "../helpers/etcd.ts";

let node: EtcdNode;
let proxy: TcpProxy;
let clients: EtcdClient[] = [];

beforeAll(async () => {
  node = await startOne();
  proxy = await TcpProxy.start(node.port);
});

afterAll(async () => {
  await proxy.close();
  await node.remove();
});

beforeEach(() => {
  proxy.heal();
  return async () => {
    await Promise.all(clients.map((client) => client.close()));
    clients = [];
  };
});

const key = Buffer.from("k");
const url = (port: number): string => `http://127.0.0.1:${port}`;

function clientOf(endpoints: readonly string[], callMs = 400): EtcdClient {
  const client = new EtcdClient({ endpoints, callMs, connectMs: 300, pingMs: 200 });
  clients.push(client);
  return client;
}

/** What a call rejects with, and how long that took. */
async function failure(call: Promise<unknown>): Promise<{ error: unknown; tookMs: number }> {
  const startedAt = performance.now();
  const error = await call.then(
    () => "it did not fail",
    (reason: unknown) => reason,
  );
  return { error, tookMs: performance.now() - startedAt };
}

it("nobody there: the call surely did not happen", async () => {
  const [port = 0] = await freePorts(1);
  const { error } = await failure(clientOf([url(port)]).call(methods.put, { key }));
  expect(error).toMatchObject({ status: status.unavailable, notDone: true });
});

it("a connection that cannot even be begun fails as others do", async () => {
  const tls = { cert: "no certificate", key: "no key" };
  const client = new EtcdClient({ endpoints: ["https://127.0.0.1:1"], tls, connectMs: 100 });
  clients.push(client);
  const { error } = await failure(client.call(methods.put, { key }));
  expect(error).toMatchObject({ status: status.unavailable, notDone: true });
  await new Promise((resolve) => setTimeout(resolve, 200));
});

it("something else than etcd is named as what it answered", async () => {
  const server = createHttp2().on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 502, "content-type": "text/html" });
    stream.end("<html>");
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const { error } = await failure(clientOf([url(port)]).call(methods.put, { key }));
  expect(error).toMatchObject({ status: status.unavailable, notDone: false });
  expect(error).toHaveProperty("message", expect.stringContaining("HTTP status 502"));
  server.close();
});

it("a server that accepts but never speaks is given up in time", async () => {
  proxy.blackhole();
  const { error, tookMs } = await failure(clientOf([url(proxy.port)]).call(methods.put, { key }));
  expect(error).toMatchObject({ notDone: true });
  expect(error).toHaveProperty("message", expect.stringContaining(url(proxy.port)));
  expect(tookMs).toBeLessThan(1_000);
});

it("several that never speak are all named", async () => {
  proxy.blackhole();
  const endpoints = [url(proxy.port), `http://localhost:${proxy.port}`];
  const { error } = await failure(clientOf(endpoints).call(methods.put, { key }));
  expect(error).toMatchObject({ status: status.deadlineExceeded, notDone: true });
  for (const endpoint of endpoints) {
    expect(error).toHaveProperty("message", expect.stringContaining(endpoint));
  }
});

it("an answer that does not come in time: the call may have happened, and here it has", async () => {
  const client = clientOf([url(proxy.port)]);
  const before = await client.call(methods.range, { key });
  proxy.down.swallow = true;
  const { error, tookMs } = await failure(client.call(methods.put, { key }));
  expect(error).toMatchObject({ notDone: false });
  expect(tookMs).toBeLessThan(1_000);
  proxy.heal();
  const after = await client.call(methods.range, { key });
  expect(after.header?.revision).toBe((before.header?.revision ?? 0n) + 1n);
});

it("a frozen server is noticed by its silence although no call reaches its deadline", async () => {
  const client = clientOf([url(proxy.port)], 10_000);
  let end: WatchEnd | null = null;
  let standing = false;
  await client.watch(
    { key },
    {
      created: () => {
        standing = true;
      },
      events: () => {},
      ended: (why) => {
        end = why;
      },
    },
  );
  await expect.poll(() => standing).toBe(true);
  proxy.blackhole();
  const { error, tookMs } = await failure(client.call(methods.put, { key }));
  expect(error).toMatchObject({ status: status.unavailable, notDone: false });
  expect(error).toHaveProperty("message", expect.stringContaining("no sign of life"));
  expect(tookMs).toBeLessThan(1_500);
  expect(end).toMatchObject({ compactRevision: 0n, error: { status: status.unavailable } });
});

it("a process that was stopped is noticed, and asked again when it goes on", async () => {
  const client = clientOf([node.endpoint]);
  await client.call(methods.range, { key });
  node.pause();
  try {
    const { tookMs } = await failure(client.call(methods.range, { key }));
    expect(tookMs).toBeLessThan(1_000);
  } finally {
    node.resume();
  }
  await expect
    .poll(() => client.call(methods.range, { key }).then(() => "answered", String))
    .toBe("answered");
});

it("an answer that came while the event loop was blocked counts", async () => {
  const client = clientOf([node.endpoint]);
  await client.call(methods.range, { key });
  const call = client.call(methods.range, { key });
  // Long enough to send it, too short to hear the answer.
  for (let turn = 0; turn < 2; turn++) await turnOfTheLoop();
  for (const until = performance.now() + 1_200; performance.now() < until;);
  expect((await call).header?.revision).toBeGreaterThan(0n);
});

it("a connection that is cut takes its calls with it, and the next call makes a new one", async () => {
  const client = clientOf([url(proxy.port)]);
  await client.call(methods.range, { key });
  proxy.down.delayMs = 5_000;
  const call = failure(client.call(methods.put, { key }, { deadlineMs: 5_000 }));
  await expect.poll(() => proxy.connections).toBe(1);
  proxy.heal();
  const { error, tookMs } = await call;
  expect(error).toMatchObject({ status: status.unavailable, notDone: false });
  expect(tookMs).toBeLessThan(2_000);
  await client.call(methods.range, { key });
});

it("of several servers the next is asked when one is not there, in the same call", async () => {
  const [port = 0] = await freePorts(1);
  for (let turn = 0; turn < 6; turn++) {
    const client = clientOf([url(port), node.endpoint]);
    expect((await client.call(methods.range, { key })).header?.memberId).toBeGreaterThan(0n);
  }
});

it("after a deadline the next call goes to the next server; none is sent twice", async () => {
  const other = await TcpProxy.start(node.port);
  try {
    const client = clientOf([url(proxy.port), url(other.port)]);
    const { header } = await client.call(methods.put, { key });
    // Whichever it chose, both are silent now: the call fails, and has been sent once.
    proxy.down.swallow = true;
    other.down.swallow = true;
    const used = proxy.connections > 0 ? proxy : other;
    await failure(client.call(methods.put, { key }));
    for (const each of [proxy, other]) if (each !== used) each.heal();
    const found = await client.call(methods.range, { key });
    expect(found.header?.revision).toBe((header?.revision ?? 0n) + 1n);
  } finally {
    await other.close();
  }
});

it("a client that was closed refuses calls, and ends those under way", async () => {
  const client = clientOf([url(proxy.port)]);
  await client.call(methods.range, { key });
  proxy.down.swallow = true;
  const call = failure(client.call(methods.put, { key }));
  await client.close();
  expect((await call).error).toMatchObject({ notDone: false });
  expect((await failure(client.call(methods.put, { key }))).error).toMatchObject({ notDone: true });
  await expect.poll(() => proxy.connections).toBe(0);
});
