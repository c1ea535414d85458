/** Messages about locks on Redis say which server it is, and nothing of who asks. */
import { once } from "node:events";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis-5";
import { createCluster } from "redis";
import { createCluster as createCluster5 } from "redis-5";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startRedis } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend } from "../../src/backends/redis/index.ts";
import { placeOfClient } from "../../src/backends/redis/place.ts";
import { LockManager } from "../../src/core/manager.ts";
import { byUrl, handedIn } from "../helpers/redis.ts";

let redis: Awaited<ReturnType<typeof startRedis>>;

beforeAll(async () => {
  redis = await startRedis({ args: ["--user", "someone", "on", ">hunter22", "~*", "&*", "+@all"] });
});
afterAll(() => redis.server.remove());

const kinds = { "ioredis by URL": byUrl("ioredis"), "node-redis by URL": byUrl("redis"), ...handedIn };

it.each(Object.entries(kinds))("a wait that is over and a loss, with %s", async (name, open) => {
  const url = `redis://someone:hunter22@127.0.0.1:${redis.port}`;
  const { backend, close } = open(url, { prefix: `${name}:` });
  const locks = new LockManager(backend);
  onTestFinished(async () => {
    await locks.close();
    await close();
  });
  const lock = await locks.acquire("a");
  const late: unknown = await locks.acquire("a", { wait: 50 }).catch((error: unknown) => error);
  // Whoever is robbed is told by push, which may come after the answer to the thief.
  const told = once(lock.signal, "abort");
  await locks.request("a", { steal: true }, () => {});
  await told;
  const start = `lock "a" on redis at 127.0.0.1:${redis.port}: `;
  expect(late).toMatchObject({
    code: "LOCK_TIMEOUT",
    backend: "redis",
    message: expect.stringContaining(`${start}not granted within`),
  });
  expect(() => lock.assertHeld()).toThrow(`${start}it is not held any more`);
});

it.each([
  ["redis://someone:hunter22@h:7000/3?prefix=x:", "h:7000"],
  ["redis://[::1]", "[::1]:6379"],
  ["redis+sentinel://someone:hunter22@a,b:27000/main/2", "main of a:26379,b:27000"],
  ["redis+cluster://:hunter22@a:1,b:2", "a:1,b:2"],
])("the place of %s", async (url, place) => {
  const backend = redisBackend({ url });
  expect(backend.place).toBe(place);
  await backend.close();
});

const lazyConnect = true;
const hosts = [
  { host: "a", port: 1 },
  { host: "b", port: 2 },
];
const rootNodes = hosts.map((socket) => ({ socket }));
const named = [{ url: "redis://someone:hunter22@a:1" }];

it.each([
  ["sentinels, ioredis 6", new Redis({ sentinels: hosts, name: "main", lazyConnect }), "main of a:1,b:2"],
  ["sentinels, ioredis 5", new Redis5({ sentinels: hosts, name: "main", lazyConnect }), "main of a:1,b:2"],
  ["a socket, ioredis 6", new Redis({ path: "/run/redis.sock", lazyConnect }), "/run/redis.sock"],
  ["a cluster, ioredis 6", new Cluster(hosts, { lazyConnect }), "a:1,b:2"],
  ["a cluster, ioredis 5", new Cluster5(hosts, { lazyConnect }), "a:1,b:2"],
  ["a cluster by URLs, ioredis 6", new Cluster(["redis://:hunter22@a:1"], { lazyConnect }), undefined],
  ["a cluster, node-redis 6", createCluster({ rootNodes }), "a:1,b:2"],
  ["a cluster, node-redis 5", createCluster5({ rootNodes }), "a:1,b:2"],
  ["a cluster by URLs, node-redis 6", createCluster({ rootNodes: named }), undefined],
  ["something else", {}, undefined],
])("the place of a client: %s", (_, client, place) => {
  expect(placeOfClient(client)).toBe(place);
});
