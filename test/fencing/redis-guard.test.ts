/** The guard for Redis: the table of cases with each client library, its keys, its scripts, and a cluster. */
import * as fc from "fast-check";
import { Cluster, Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createClient, createCluster, createSentinel } from "redis";
import { createClient as createClient5 } from "redis-5";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startCluster } from "../../scripts/lib/redis-servers.mjs";
import type { RedisClient } from "../../src/backends/redis/index.ts";
import { highestToken, redisGuard, type RedisGuard } from "../../src/fencing/index.ts";
import { testServer } from "../helpers/redis.ts";
import type { Subject } from "./cases.ts";
import { guardCases } from "./guard-cases.ts";

let server: Awaited<ReturnType<typeof testServer>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
let looker: Redis;
const closing: (() => unknown)[] = [];
const prefix = `fence-${process.pid}:`;

beforeAll(async () => {
  [server, cluster] = await Promise.all([testServer(), startCluster()]);
  looker = new Redis(server.url);
  closing.push(() => looker.disconnect());
});

afterAll(async () => {
  for (const key of await looker.keys(`*${process.pid}*`)) await looker.del(key);
  for (const close of closing) await close();
  await Promise.all([server.close(), ...cluster.servers.map((one) => one.server.remove())]);
});

/** Clients with the options that each library has by itself. */
const clients = {
  "ioredis 6": async () => {
    const client = new Redis(server.url);
    closing.push(() => client.disconnect());
    return client;
  },
  "ioredis 5": async () => {
    const client = new Redis5(server.url);
    closing.push(() => client.disconnect());
    return client;
  },
  "node-redis 6": async () => {
    const client = createClient({ url: server.url });
    closing.push(() => client.destroy());
    await client.connect();
    return client;
  },
  "node-redis 5": async () => {
    const client = createClient5({ url: server.url });
    closing.push(() => client.destroy());
    await client.connect();
    return client;
  },
} satisfies Record<string, () => Promise<RedisClient>>;

let keys = 0;
const freshKey = (): string => `${prefix}key-${++keys}`;

/** Two connections, so that those who meet come by different ways. */
function subjectOf(pair: readonly [RedisClient, RedisClient], key: string): Subject {
  const [even, odd] = pair.map((client) => redisGuard({ client, prefix }));
  const guard = (token: bigint): RedisGuard | undefined => (token % 2n === 0n ? even : odd);
  return {
    write: async (token, value) => guard(token)?.write(key, token, value),
    read: () => looker.get(key),
    show: async (token) => guard(token)?.show(key, token),
    highest: async () => (await odd?.highest(key)) ?? null,
    restart: async () => subjectOf(pair, key),
  };
}

for (const [library, open] of Object.entries(clients)) {
  let pair: Promise<[RedisClient, RedisClient]> | null = null;
  const subject = async (): Promise<Subject> =>
    subjectOf(await (pair ??= Promise.all([open(), open()])), freshKey());
  guardCases(`redis, ${library}`, subject, true, library.endsWith("6") ? 1_000 : 200);
}

describe("the guard for Redis", () => {
  it.each(["ioredis 6", "node-redis 6"] as const)("with %s writes text, bytes and a ttl", async (library) => {
    const guard = redisGuard({ client: await clients[library](), prefix });
    const key = freshKey();
    await guard.write(key, 7n, new Uint8Array([0, 255, 10, 13]), { ttl: "1m" });
    expect([...((await looker.getBuffer(key)) ?? [])]).toEqual([0, 255, 10, 13]);
    expect(await looker.pttl(key)).toBeGreaterThan(50_000);
    await guard.write(key, 7n, "für immer");
    expect(await looker.get(key)).toBe("für immer");
    expect(await looker.pttl(key)).toBe(-1);
    expect(await looker.keys(`*${key}*`)).toEqual(expect.arrayContaining([key, `${prefix}{${key}}`]));
  });

  it("keeps a token for as long as is said", async () => {
    const guard = redisGuard({ client: looker, prefix, keepFor: 60_000 });
    const key = freshKey();
    await guard.show(key, 7n);
    expect(await looker.pttl(`${prefix}{${key}}`)).toBeGreaterThan(50_000);
    await redisGuard({ client: looker, prefix }).show(key, 8n);
    expect(await looker.pttl(`${prefix}{${key}}`)).toBe(-1);
  });

  it("compares in Lua as in TypeScript", async () => {
    const guard = redisGuard({ client: looker, prefix });
    const tokens = fc.oneof(fc.bigInt({ min: 0n, max: highestToken }), fc.bigInt({ min: 0n, max: 300n }));
    const near = fc.tuple(tokens, fc.bigInt({ min: -2n, max: 2n })).map(([one, more]) => {
      const other = one + more;
      return [one, other < 0n || other > highestToken ? one : other] as const;
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(near, fc.tuple(tokens, tokens)), async ([one, other]) => {
        const key = freshKey();
        await guard.show(key, one);
        const outcome = await guard.show(key, other).then(
          () => "accepted",
          () => "refused",
        );
        expect(outcome).toBe(other < one ? "refused" : "accepted");
      }),
      { numRuns: 300 },
    );
  });

  it.each(["ioredis 6", "node-redis 6"] as const)(
    "with %s runs a script of your own behind the check",
    async (library) => {
      const guard = redisGuard({ client: await clients[library](), prefix });
      const key = freshKey();
      const count = {
        script: `redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
        redis.call('SET', KEYS[2], ARGV[2])
        return redis.call('HGET', KEYS[1], ARGV[1]) -- the new count`,
        keys: [`${key}-other`],
        args: ["field", "value"],
      };
      expect(await guard.run(key, 7n, count)).toBe("1");
      expect(await guard.run(key, 7n, count)).toBe("2");
      await expect(guard.run(key, 6n, count)).rejects.toMatchObject({
        code: "LOCK_STALE_TOKEN",
        backend: "redis",
      });
      expect(await looker.hget(key, "field")).toBe("2");
      expect(await looker.get(`${key}-other`)).toBe("value");
      expect(await guard.run(key, 7n, { script: "" })).toBe(undefined);
      expect(await guard.run(key, 7n, { script: "return { 1, 'stale', {} }" })).toEqual([1, "stale", []]);
      const failing = guard.run(key, 8n, { script: "return redis.call('INCR', KEYS[1])" });
      await expect(failing).rejects.toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
      const refusing = guard.run(key, 8n, { script: "return redis.error_reply('ERR no')" });
      await expect(refusing).rejects.toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
      // The token counts: it was shown before the script began.
      expect(await guard.highest(key)).toBe(8n);
    },
  );

  it("writes nothing where its own key is somebody else's", async () => {
    const guard = redisGuard({ client: looker, prefix });
    for (const spoil of [
      (fence: string) => looker.set(fence, "seven"),
      (fence: string) => looker.hset(fence, "field", "7"),
    ]) {
      const key = freshKey();
      await spoil(`${prefix}{${key}}`);
      await expect(guard.write(key, 7n, "x")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
      expect(await looker.exists(key)).toBe(0);
    }
  });

  it("refuses keys and clients that would break its promise", async () => {
    const guard = redisGuard({ client: looker, prefix });
    for (const key of ["", "a}b", "a{}b"]) {
      await expect(guard.write(key, 7n, "x")).rejects.toMatchObject({ code: "LOCK_INVALID" });
    }
    const prefixed = new Redis(server.url, { keyPrefix: "app:", lazyConnect: true });
    expect(() => redisGuard({ client: prefixed })).toThrow(/keyPrefix/);
    expect(() => redisGuard({ client: looker, prefix: "a{b}" })).toThrow(/braces/);
    const sentinel: unknown = createSentinel({ name: "primary", sentinelRootNodes: [] });
    const untyped: (options: never) => unknown = redisGuard;
    for (const client of [sentinel, {}, null]) {
      expect(() => Reflect.apply(untyped, null, [{ client }])).toThrow(TypeError);
    }
  });
});

describe("the guard on a cluster", () => {
  const nodes = (): { host: string; port: number }[] =>
    cluster.servers.map(({ port }) => ({ host: "127.0.0.1", port }));
  const open = {
    ioredis: async () => {
      const client = new Cluster(nodes());
      closing.push(() => client.disconnect());
      return { client, get: (key: string) => client.get(key) };
    },
    "node-redis": async () => {
      const client = createCluster({ rootNodes: nodes().map((socket) => ({ socket })) });
      closing.push(() => client.destroy());
      await client.connect();
      return { client, get: (key: string) => client.get(key) };
    },
  };

  it.each(["ioredis", "node-redis"] as const)(
    "with %s keeps token and value in one slot",
    async (library) => {
      const { client, get } = await open[library]();
      const guard = redisGuard({ client });
      const names = [
        "plain",
        "with:colons",
        "{tag}:rest",
        "before{tag}after",
        "a{b",
        "ä€😀",
        "x".repeat(300),
      ];
      for (const name of names) {
        await guard.write(name, 34n, "new");
        await expect(guard.write(name, 33n, "old")).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
        expect(await get(name)).toBe("new");
        expect(await guard.highest(name)).toBe(34n);
      }
      const both = { script: "return redis.call('SET', KEYS[2], 'too')", keys: ["{tag}:second"] };
      expect(await guard.run("{tag}:rest", 34n, both)).toBe("OK");
      await expect(guard.run("plain", 34n, { script: "", keys: ["elsewhere"] })).rejects.toMatchObject({
        code: "LOCK_INVALID",
      });
    },
  );
});
