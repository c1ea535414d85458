/** The Redis backend on a primary with a replica, watched by a Sentinel. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createSentinel } from "redis";
import { createSentinel as createSentinel5 } from "redis-5";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ask, startSentinel } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend } from "../../src/backends/redis/index.ts";
import { connect } from "../../src/connect.ts";
import { LockManager } from "../../src/core/manager.ts";
import { backendContract } from "../../src/testing/index.ts";
import { byUrl, connected, contractStore, type Opened, safeIoredis } from "../helpers/redis.ts";

type Watched = Awaited<ReturnType<typeof startSentinel>>;

const runner = { describe, it };
let watched: Watched;
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

function urlOf({ name, sentinels }: Watched, library: string): string {
  const address = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return `redis+sentinel://${address}/${name}?client=${library}`;
}

interface Following {
  readonly sentinels: { host: string; port: number }[];
  readonly name: string;
  readonly socketTimeout?: number;
  readonly connectTimeout?: number;
}

/** Clients of the caller's own that follow a primary. */
const handedIn = {
  "ioredis 6": (options: Following) => new Redis({ ...safeIoredis, ...options }),
  "ioredis 5": (options: Following) => new Redis5({ ...safeIoredis, ...options }),
};

function handIn(library: keyof typeof handedIn, waits: Partial<Following> = {}): (pair: Watched) => Opened {
  return ({ name, sentinels }) => {
    const hosts = sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
    const client = handedIn[library]({ ...waits, sentinels: hosts, name });
    client.on("error", () => {});
    const backend = redisBackend({ client, deadlineMs: 8_000 });
    return { backend, close: async () => client.disconnect() };
  };
}

function openUrl(library: string): (pair: Watched) => Opened {
  return (pair) => {
    const backend = redisBackend({ url: urlOf(pair, library), deadlineMs: 8_000 });
    return { backend, close: () => backend.close() };
  };
}

const followers = {
  ioredis: openUrl("ioredis"),
  redis: openUrl("redis"),
  "ioredis 6 handed in": handIn("ioredis 6"),
  "ioredis 5 handed in": handIn("ioredis 5"),
};

describe.each(Object.entries(followers))("a fail-over, with %s", (_, open) => {
  it("is followed: waits go on, nobody holds twice, and tokens grow", async () => {
    const pair = await startSentinel();
    const opened = [open(pair), open(pair)];
    const managers = opened.map(({ backend }) => new LockManager(backend));
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
      await Promise.all(opened.map(({ close }) => close()));
      await Promise.all([...pair.sentinels, ...pair.servers].map(({ server }) => server.remove()));
    }
    expect(wrong).toBe(0);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(failed).toBeLessThan(50);
  }, 90_000);
});

async function startPair(sentinels: number): Promise<Watched> {
  const pair = await startSentinel({ sentinels });
  onTestFinished(async () => {
    const all = [...pair.sentinels, ...pair.servers];
    await Promise.all(all.map(({ server }) => server.remove()));
  });
  return pair;
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

describe.each(["ioredis", "redis"] as const)("servers that stand still, with %s", (library) => {
  function locksOf(pair: Watched): LockManager {
    const locks = new LockManager(redisBackend({ url: urlOf(pair, library), deadlineMs: 3_000 }));
    onTestFinished(() => locks.close());
    return locks;
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

describe.each(["ioredis 6", "ioredis 5"] as const)(
  "a primary that stands still, with %s handed in",
  (library) => {
    it("is left by a client that has a socketTimeout", async () => {
      const pair = await startPair(1);
      const { backend, close } = handIn(library, { socketTimeout: 1_000, connectTimeout: 1_000 })(pair);
      const locks = new LockManager(backend);
      onTestFinished(async () => {
        await locks.close();
        await close();
      });
      await acquired(locks, 10_000);
      pair.servers[0]?.server.pause();
      await acquired(locks, 40_000);
      expect(await ask(pair.servers[1]?.port ?? 0, "role")).toMatch(/^master/);
    }, 90_000);
  },
);

interface Roots {
  readonly name: string;
  readonly sentinelRootNodes: { host: string; port: number }[];
}

describe.each([
  ["6", (options: Roots): unknown => createSentinel(options)],
  ["5", (options: Roots): unknown => createSentinel5(options)],
])("a client made by createSentinel of node-redis %s", (_, create) => {
  it("is refused, with what to give instead", async () => {
    const sentinelRootNodes = watched.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
    const client = create({ name: watched.name, sentinelRootNodes });
    const untyped: (options: never) => unknown = redisBackend;
    const refusal = { name: "TypeError", code: "LOCK_INVALID" };
    const refused = async (): Promise<unknown> => Reflect.apply(untyped, null, [{ client }]);
    await expect(refused()).rejects.toMatchObject({
      ...refusal,
      message: expect.stringMatching(/createSentinel .*give a redis\+sentinel:\/\/ url instead/),
    });
    const untypedConnect: (store: never) => Promise<unknown> = connect;
    await expect(Reflect.apply(untypedConnect, null, [client])).rejects.toMatchObject({
      ...refusal,
      message: expect.stringContaining("redisBackend({ client })"),
    });
  });
});
