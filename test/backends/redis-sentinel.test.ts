/** The Redis backend on a primary with a replica, watched by a Sentinel. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ask, startSentinel } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend } from "../../src/backends/redis/index.ts";
import { LockManager } from "../../src/core/manager.ts";
import { backendContract } from "../../src/testing/index.ts";
import { byUrl, connected, contractStore } from "../helpers/redis.ts";

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
    open: () => connected(contractStore(url, byUrl(library), (prefix) => looker.keys(`${prefix}*`))),
    runner,
    interleavings: 30,
    shortMs: 400,
    lagMs: 200,
    patienceMs: 10_000,
  });
}

describe.each(["ioredis", "redis"] as const)("a fail-over, with %s", (library) => {
  it("is followed: waits go on, nobody holds twice, and tokens grow", async () => {
    const pair = await startSentinel();
    const address = pair.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const open = (): LockManager =>
      new LockManager(
        redisBackend({
          url: `redis+sentinel://${address}/${pair.name}?client=${library}`,
          deadlineMs: 8_000,
        }),
      );
    const managers = [open(), open()];
    const tokens: bigint[] = [];
    let inside = 0;
    let wrong = 0;
    let failed = 0;
    const over = new AbortController();
    const loops = managers.map(async (locks) => {
      while (!over.signal.aborted) {
        await locks
          .request("counter", { ttl: "20s" }, async (lock) => {
            inside += 1;
            if (inside > 1) wrong += 1;
            tokens.push(lock.token);
            await sleep(5);
            inside -= 1;
          })
          .catch(() => {
            failed += 1;
          });
      }
    });
    try {
      const startedAt = performance.now();
      while (tokens.length < 20 && performance.now() - startedAt < 20_000) await sleep(20);
      expect(tokens.length).toBeGreaterThanOrEqual(20);
      // The replica has everything: this fail-over loses nothing.
      await ask(pair.servers[0]?.port ?? 0, "wait", "1", "1000");
      await pair.servers[0]?.server.kill();
      const killedAt = performance.now();
      // A server that changes its role ends its connections, and whoever asks at that moment gets no answer.
      const promoted = async (): Promise<boolean> => {
        const role = await ask(pair.servers[1]?.port ?? 0, "role").catch(() => "unknown");
        return role.startsWith("master");
      };
      while (!(await promoted())) await sleep(50);
      const atPromotion = tokens.length;
      while (tokens.length < atPromotion + 20 && performance.now() - killedAt < 40_000) await sleep(50);
      expect(tokens.length).toBeGreaterThanOrEqual(atPromotion + 20);
    } finally {
      over.abort();
      await Promise.all(loops);
      await Promise.all(managers.map((locks) => locks.close()));
      await Promise.all([...pair.sentinels, ...pair.servers].map(({ server }) => server.remove()));
    }
    expect(wrong).toBe(0);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(failed).toBeLessThan(50);
  }, 90_000);
});

describe.each(["ioredis", "redis"] as const)("servers that stand still, with %s", (library) => {
  async function startPair(sentinels: number): Promise<Awaited<ReturnType<typeof startSentinel>>> {
    const pair = await startSentinel({ sentinels });
    onTestFinished(async () => {
      const all = [...pair.sentinels, ...pair.servers];
      await Promise.all(all.map(({ server }) => server.remove()));
    });
    return pair;
  }

  function locksOf(pair: Awaited<ReturnType<typeof startSentinel>>): LockManager {
    const address = pair.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const at = `redis+sentinel://${address}/${pair.name}?client=${library}`;
    const locks = new LockManager(redisBackend({ url: at, deadlineMs: 3_000 }));
    onTestFinished(() => locks.close());
    return locks;
  }

  /** Asks again and again, as a caller would. */
  async function acquired(locks: LockManager, withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    for (;;) {
      try {
        return void (await (await locks.acquire("a")).release());
      } catch (error) {
        if (performance.now() > end) throw error;
      }
    }
  }

  it("one of the Sentinels: the next one is asked", async () => {
    const pair = await startPair(2);
    pair.sentinels[0]?.server.pause();
    await acquired(locksOf(pair), 10_000);
  }, 60_000);

  it("all Sentinels, for longer than a deadline: found when they go on", async () => {
    const pair = await startPair(1);
    pair.sentinels[0]?.server.pause();
    const locks = locksOf(pair);
    for (let turn = 0; turn < 2; turn++)
      await expect(locks.acquire("a")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    pair.sentinels[0]?.server.resume();
    await acquired(locks, 10_000);
  }, 60_000);

  it("the primary: its successor is found, although it never ends a connection", async () => {
    const pair = await startPair(1);
    const locks = locksOf(pair);
    await acquired(locks, 10_000);
    pair.servers[0]?.server.pause();
    await acquired(locks, 40_000);
    expect(await ask(pair.servers[1]?.port ?? 0, "role")).toMatch(/^master/);
  }, 90_000);
});
