/** Wake-ups on a cluster travel by sharded channels, with each library and version; what takes these away hangs nobody. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { Cluster as Cluster5 } from "ioredis-5";
import { createCluster } from "redis";
import { createCluster as createCluster5 } from "redis-5";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend, type RedisBackend, type RedisSettings } from "../../src/backends/redis/index.ts";
import { slotOf } from "../../src/backends/redis/keys.ts";
import { LockManager } from "../../src/core/manager.ts";
import { safeIoredis } from "../helpers/redis.ts";
import { type TestCluster, testCluster } from "../helpers/redis-cluster.ts";

let cluster: TestCluster;

beforeAll(async () => {
  cluster = await testCluster();
});

afterAll(() => cluster.close());

interface Opened {
  readonly backend: RedisBackend;
  readonly close: () => unknown;
}

const ioredisOptions = {
  ...safeIoredis,
  retryDelayOnFailover: 0,
  redisOptions: safeIoredis,
  lazyConnect: true,
};
const places = (): { host: string; port: number }[] =>
  cluster.ports.map((port) => ({ host: "127.0.0.1", port }));
const rootNodes = (): { socket: { host: string; port: number } }[] => places().map((socket) => ({ socket }));
const defaults = { disableOfflineQueue: true };

/** Each library and version, handed in or by URL. */
const clients: Readonly<Record<string, (settings: RedisSettings) => Opened>> = {
  "ioredis 6": (settings) => {
    const client = new Cluster(places(), ioredisOptions);
    return { backend: redisBackend({ client, ...settings }), close: () => client.disconnect() };
  },
  "ioredis 5": (settings) => {
    const client = new Cluster5(places(), ioredisOptions);
    return { backend: redisBackend({ client, ...settings }), close: () => client.disconnect() };
  },
  "node-redis 6": (settings) => {
    const client = createCluster({ rootNodes: rootNodes(), defaults });
    client.on("error", () => {});
    return { backend: redisBackend({ client, ...settings }), close: () => client.destroy() };
  },
  "node-redis 5": (settings) => {
    const client = createCluster5({ rootNodes: rootNodes(), defaults });
    client.on("error", () => {});
    return { backend: redisBackend({ client, ...settings }), close: () => client.destroy() };
  },
  "ioredis by URL": (settings) => {
    const backend = redisBackend({ url: `${cluster.url}?client=ioredis`, ...settings });
    return { backend, close: () => {} };
  },
  "node-redis by URL": (settings) => {
    const backend = redisBackend({ url: `${cluster.url}?client=redis`, ...settings });
    return { backend, close: () => {} };
  },
};

/** How often a command has run on all nodes, inside scripts too. */
async function runs(command: string): Promise<number> {
  const stats = await Promise.all(cluster.ports.map((port) => ask(port, "info", "commandstats")));
  const counts = stats.map((text) => new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(text)?.[1]);
  return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
}

/** Sharded channels with a prefix that somebody listens on, at each node. */
async function channels(prefix: string): Promise<readonly number[]> {
  const lists = await Promise.all(
    cluster.ports.map((port) => ask(port, "pubsub", "shardchannels", `${prefix}*`)),
  );
  return lists.map((list) => list.split("\n").filter(Boolean).length);
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > until) throw new Error("it did not come true within 10 s");
    await sleep(10);
  }
}

let pairs = 0;

/** Two clients with a prefix of their own, which is the name of their lock, too; closed at the end. */
async function withTwo(
  name: string,
  deadlineMs: number,
  body: (a: LockManager, b: LockManager, prefix: string) => Promise<void>,
): Promise<void> {
  const prefix = `push-${++pairs}:`;
  const opened = [1, 2].map(() => clients[name]?.({ prefix, deadlineMs }));
  const [a, b] = opened.map((one) => one && new LockManager(one.backend));
  try {
    if (a === undefined || b === undefined) throw new Error(`there is no client ${name}`);
    await body(a, b, prefix);
  } finally {
    await Promise.all([a?.close(), b?.close()]);
    for (const one of opened) one?.close();
  }
}

/** A lock that one holds, with a ttl that nobody lives to see, and another waits for and listens. */
async function contended(a: LockManager, b: LockManager, prefix: string): Promise<() => Promise<number>> {
  const lock = await a.acquire(prefix, { ttl: "10m" });
  const waiting = b.acquire(prefix, { ttl: "10m" });
  await eventually(async () => (await channels(prefix)).some((count) => count > 0));
  return async () => {
    const releasedAt = performance.now();
    await lock.release();
    const next = await waiting;
    const tookMs = performance.now() - releasedAt;
    await next.release();
    return tookMs;
  };
}

describe.each(Object.keys(clients))("wake-ups on a cluster, with %s", (name) => {
  it("stay on the node of their slot, and leave no subscription behind", async () => {
    // A client that has not waited for as long as its deadline may stop listening: a busy machine must not take so long between the fights.
    await withTwo(name, 4_000, async (a, b, prefix) => {
      const slot = slotOf(prefix);
      const owner = await cluster.ownerOf(slot);
      const fight = async (locks: LockManager, times: number): Promise<void> => {
        for (let i = 0; i < times; i++) await locks.request(prefix, () => sleep(1));
      };
      // Until both listen, which takes a wait of each.
      const both = async (): Promise<boolean> => {
        await Promise.all([fight(a, 3), fight(b, 3)]);
        return (await channels(prefix))[owner] === 2;
      };
      await eventually(both);
      const [plain, sharded] = await Promise.all([runs("publish"), runs("spublish")]);
      await Promise.all([fight(a, 40), fight(b, 40)]);
      expect(await runs("publish"), "forwarded to all nodes").toBe(plain);
      expect(await runs("spublish")).toBeGreaterThan(sharded + 60);
      await eventually(async () => (await channels(prefix)).every((count) => count === 0));
    });
  });

  it("reach a waiter whose slot moves: while it does, and after", async () => {
    await withTwo(name, 3_000, async (a, b, prefix) => {
      const slot = slotOf(prefix);
      const from = await cluster.ownerOf(slot);
      const during = await contended(a, b, prefix);
      let [whileMs, afterMs] = [Number.NaN, Number.NaN];
      await cluster.moveSlot(slot, from, (from + 1) % 3, async () => {
        whileMs = await during();
      });
      expect(whileMs, "released while the slot was moving").toBeLessThan(2_000);
      const after = await contended(a, b, prefix);
      await cluster.moveSlot(slot, (from + 1) % 3, from);
      afterMs = await after();
      expect(afterMs, "released after the slot had moved").toBeLessThan(2_000);
      // And it listens where the slot is now.
      const again = await contended(a, b, prefix);
      await cluster.moveSlot(slot, from, (from + 1) % 3);
      await eventually(async () => (await channels(prefix))[(from + 1) % 3] === 1);
      const plain = await runs("publish");
      await again();
      expect(await runs("publish")).toBe(plain);
    });
  });

  it("reach a waiter whose connections were killed", async () => {
    await withTwo(name, 3_000, async (a, b, prefix) => {
      const release = await contended(a, b, prefix);
      await Promise.all(cluster.ports.map((port) => ask(port, "client", "kill", "type", "pubsub")));
      expect(await release()).toBeLessThan(2_000);
    });
  });
});

describe("rights on a cluster", () => {
  const page = readFileSync(new URL("../../docs/backends/redis.md", import.meta.url), "utf8");
  const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
  const onCluster = /^On a Cluster also `([^`]*)`/m.exec(page)?.[1] ?? "";

  async function user(name: string, without: readonly string[]): Promise<string> {
    const words = `${line} ${onCluster}`.split(" ").filter((word) => !without.includes(word));
    for (const port of cluster.ports) {
      await ask(port, ...words.map((word) => (word === "locks" ? name : word)));
      await ask(port, "acl", "log", "reset");
    }
    return cluster.url.replace("://", `://${name}:password@`);
  }

  async function handOver(url: string): Promise<readonly string[]> {
    const backends = [1, 2].map(() => redisBackend({ url, prefix: "holdfast:" }));
    const [a, b] = backends.map((backend) => new LockManager(backend));
    try {
      const lock = await a?.acquire("x", { ttl: "10m" });
      const waiting = b?.acquire("x");
      await eventually(async () => (await a?.query())?.pending.length === 1);
      await sleep(100);
      await lock?.release();
      await (await waiting)?.release();
      const findings = (await backends[1]?.examine()) ?? [];
      return findings.filter(({ about }) => about === "push").map(({ level, seen }) => `${level}: ${seen}`);
    } finally {
      await Promise.all([a?.close(), b?.close()]);
    }
  }

  it.each(["ioredis", "redis"])("the ACL line of the docs is enough, with %s", async (library) => {
    const url = await user(`locks-${library}`, []);
    expect(await handOver(`${url}?client=${library}`)).toEqual(["ok: sharded channels"]);
    const logs = await Promise.all(cluster.ports.map((port) => ask(port, "acl", "log")));
    for (const log of logs) expect(log.includes(`username\nlocks-${library}`), log).toBe(false);
  });

  it.each(["ioredis", "redis"])(
    "without sharded channels, plain ones do, and it is said, with %s",
    async (library) => {
      const url = await user(`plain-${library}`, ["+spublish", "+ssubscribe", "+sunsubscribe"]);
      const [finding] = await handOver(`${url}?client=${library}`);
      expect(finding).toMatch(/^warning: plain channels: .*NOPERM/);
    },
  );
});
