/** The Redis backend against the contract on one server, with clients of both libraries. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { startRedis } from "../../scripts/lib/redis-servers.mjs";
import { backendContract } from "../../src/testing/index.ts";
import { contractStore, handedIn } from "../helpers/redis.ts";

const runner = { describe, it };
let started: Awaited<ReturnType<typeof startRedis>>;

beforeAll(async () => {
  started = await startRedis();
});

afterAll(() => started.server.remove());

for (const library of ["ioredis", "node-redis"] as const) {
  backendContract({
    name: `redis, ${library}`,
    open: () => contractStore(started.port, handedIn[library]),
    runner,
    interleavings: 150,
  });
}
