/** The Redis backend on a cluster of three primaries. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { startCluster } from "../../scripts/lib/redis-servers.mjs";
import { backendContract } from "../../src/testing/index.ts";
import { byUrl, contractStore } from "../helpers/redis.ts";

const runner = { describe, it };
let cluster: Awaited<ReturnType<typeof startCluster>>;
let lookers: readonly Redis[];
let url: string;

beforeAll(async () => {
  cluster = await startCluster();
  lookers = cluster.servers.map(({ port }) => new Redis(port));
  url = `redis+cluster://${cluster.servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
});

afterAll(async () => {
  for (const looker of lookers) looker.disconnect();
  await Promise.all(cluster.servers.map(({ server }) => server.remove()));
});

async function keysWith(prefix: string): Promise<readonly string[]> {
  return (await Promise.all(lookers.map((looker) => looker.keys(`${prefix}*`)))).flat();
}

for (const library of ["ioredis", "redis"] as const) {
  backendContract({
    name: `redis cluster, ${library}`,
    open: () => contractStore(url, byUrl(library), keysWith),
    runner,
    interleavings: 50,
  });
}
