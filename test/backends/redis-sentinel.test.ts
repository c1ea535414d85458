/** The Redis backend on a primary with a replica, watched by a Sentinel. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { startSentinel } from "../../scripts/lib/redis-servers.mjs";
import { backendContract } from "../../src/testing/index.ts";
import { byUrl, contractStore } from "../helpers/redis.ts";

const runner = { describe, it };
let watched: Awaited<ReturnType<typeof startSentinel>>;
let looker: Redis;
let url: string;

beforeAll(async () => {
  watched = await startSentinel();
  const sentinels = watched.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
  looker = new Redis({ sentinels, name: watched.name });
  url = `redis+sentinel://${sentinels.map(({ host, port }) => `${host}:${port}`).join(",")}/${watched.name}`;
});

afterAll(async () => {
  looker.disconnect();
  await Promise.all([...watched.sentinels, ...watched.servers].map(({ server }) => server.remove()));
});

for (const library of ["ioredis", "redis"] as const) {
  backendContract({
    name: `redis by Sentinel, ${library}`,
    open: () => contractStore(url, byUrl(library), (prefix) => looker.keys(`${prefix}*`)),
    runner,
    interleavings: 50,
  });
}
