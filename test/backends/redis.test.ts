/** The Redis backend against the contract on one server, with clients of both libraries, of both versions of each. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { backendContract } from "../../src/testing/index.ts";
import { byUrl, contractStore, handedIn, testServer } from "../helpers/redis.ts";

const runner = { describe, it };
let server: Awaited<ReturnType<typeof testServer>>;
let looker: Redis;

beforeAll(async () => {
  server = await testServer();
  looker = new Redis(server.url);
});

afterAll(async () => {
  looker.disconnect();
  await server.close();
});

const clients = [
  { name: "ioredis 6", open: handedIn["ioredis 6"], interleavings: 300 },
  { name: "node-redis 6", open: handedIn["node-redis 6"], interleavings: 300 },
  { name: "ioredis 5", open: handedIn["ioredis 5"], interleavings: 30 },
  { name: "node-redis 5", open: handedIn["node-redis 5"], interleavings: 30 },
  { name: "by URL, ioredis", open: byUrl("ioredis"), interleavings: 30 },
  { name: "by URL, node-redis", open: byUrl("redis"), interleavings: 30 },
];

for (const { name, open, interleavings } of clients) {
  backendContract({
    name: `redis, ${name}`,
    open: () => contractStore(server.url, open, (prefix) => looker.keys(`${prefix}*`)),
    runner,
    interleavings,
  });
}
