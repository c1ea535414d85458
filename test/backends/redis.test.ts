/** The Redis backend against the contract on one server, with clients of both libraries, of both versions of each. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisBackend } from "../../src/backends/redis/index.ts";
import type { NewEntry } from "../../src/core/backend.ts";
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

it("renewals that travel together do not fail each other", async () => {
  const [ttlMs, owner] = [5_000, { client: "c", host: "h", pid: 1 }];
  const backend = redisBackend({ url: server.url, prefix: "together:" });
  const append = async (queue: string, id: string) => {
    const entry: NewEntry = { id, owner, mode: "write", weight: 1, ttlMs };
    return (await backend.append(queue, entry))?.self.seq ?? 0n;
  };
  try {
    const queues = ["alone", "wanted", "left", "spoilt", "another"];
    const seqs = await Promise.all(queues.map((queue) => append(queue, `${queue}'s`)));
    await append("wanted", "waiter");
    await backend.remove("left", "left's");
    await looker.del("together:{spoilt}");
    await looker.hset("together:{spoilt}", "of", "somebody else");
    const renewals = queues.map((queue, place) => ({
      queue,
      id: `${queue}'s`,
      seq: seqs[place] ?? 0n,
      ttlMs,
    }));
    const answers = await backend.renew(renewals);
    const renewed = { outcome: "renewed", expiresInMs: ttlMs };
    const unknown = { outcome: "unknown", cause: expect.objectContaining({ code: "LOCK_UNAVAILABLE" }) };
    expect(answers).toEqual([renewed, renewed, { outcome: "gone" }, unknown, renewed]);
  } finally {
    await backend.close();
    await looker.del(...(await looker.keys("together:*")));
  }
});
