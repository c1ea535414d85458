/** The Redis backend on a cluster one of whose primaries goes away: its replica takes over, and is found. */
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { Cluster as Cluster5 } from "ioredis-5";
import { createCluster } from "redis";
import { createCluster as createCluster5 } from "redis-5";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask, startCluster } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend, type RedisBackend } from "../../src/backends/redis/index.ts";
import { slotOf } from "../../src/backends/redis/keys.ts";
import { LockManager } from "../../src/core/manager.ts";
import { safeIoredis } from "../helpers/redis.ts";

const deadlineMs = 3_000;
const ioredisOptions = { ...safeIoredis, retryDelayOnFailover: 0, redisOptions: safeIoredis };
const defaults = { disableOfflineQueue: true };

/** Each library by URL, and each version handed in. */
const clients: Readonly<Record<string, (ports: readonly number[]) => RedisBackend>> = {
  "ioredis by URL": (ports) => redisBackend({ url: `${urlOf(ports)}?client=ioredis`, deadlineMs }),
  "node-redis by URL": (ports) => redisBackend({ url: `${urlOf(ports)}?client=redis`, deadlineMs }),
  "ioredis 6": (ports) => {
    const client = new Cluster(placesOf(ports), ioredisOptions);
    client.on("error", () => {});
    onTestFinished(() => client.disconnect());
    return redisBackend({ client, deadlineMs });
  },
  "ioredis 5": (ports) => {
    const client = new Cluster5(placesOf(ports), ioredisOptions);
    client.on("error", () => {});
    onTestFinished(() => client.disconnect());
    return redisBackend({ client, deadlineMs });
  },
  "node-redis 6": (ports) => {
    const client = createCluster({ rootNodes: placesOf(ports).map((socket) => ({ socket })), defaults });
    client.on("error", () => {});
    onTestFinished(() => client.destroy());
    return redisBackend({ client, deadlineMs });
  },
  "node-redis 5": (ports) => {
    const client = createCluster5({ rootNodes: placesOf(ports).map((socket) => ({ socket })), defaults });
    client.on("error", () => {});
    onTestFinished(() => client.destroy());
    return redisBackend({ client, deadlineMs });
  },
};

function placesOf(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }));
}

function urlOf(ports: readonly number[]): string {
  return `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(",")}`;
}

/** Lets those who have their slots go on while another primary is away. */
async function letOthersServe(servers: readonly { readonly port: number }[]): Promise<void> {
  for (const { port } of servers) await ask(port, "config", "set", "cluster-require-full-coverage", "no");
}

/** A name in the first third of the slots, which the first primary has. */
const name = Array.from({ length: 100 }, (_, n) => `lock-${n}`).find((each) => slotOf(`{${each}}`) < 5_000);
const elsewhere = Array.from({ length: 100 }, (_, n) => `other-${n}`).find(
  (each) => slotOf(`{${each}}`) > 11_000,
);

const faults = ["is killed", "stands still"] as const;
const cases = Object.entries(clients).flatMap(([client, open]) =>
  faults.map((fault) => ({ client, open, fault })),
);

describe("a primary of a cluster", () => {
  it.each(cases)(
    "that $fault: its replica is found, and nobody else is disturbed, with $client",
    async ({ open, fault }) => {
      const { servers } = await startCluster({ replicas: 1, nodeTimeoutMs: 1_000 });
      onTestFinished(async () => {
        await Promise.all(servers.map(({ server }) => server.remove()));
      });
      await letOthersServe(servers);
      const locks = new LockManager(open(servers.map(({ port }) => port)));
      onTestFinished(() => locks.close());
      const [a = "", b = ""] = [name, elsewhere];
      for (const each of [a, b]) await (await locks.acquire(each)).release();
      const over = new AbortController();
      const failures: unknown[] = [];
      // Other nodes answer all the time.
      const others = (async () => {
        while (!over.signal.aborted) {
          await locks.request(b, () => sleep(5)).catch((error: unknown) => failures.push(error));
        }
      })();
      const [primary] = servers;
      if (fault === "is killed") await primary?.server.kill();
      else primary?.server.pause();
      const end = performance.now() + 40_000;
      let lock = null;
      while (lock === null && performance.now() < end) lock = await locks.acquire(a).catch(() => null);
      over.abort();
      await others;
      expect(lock?.held).toBe(true);
      expect(failures).toEqual([]);
      const roles = await Promise.all(servers.slice(3).map(({ port }) => ask(port, "role")));
      expect(roles.some((role) => role.startsWith("master"))).toBe(true);
    },
    90_000,
  );

  it.each(["ioredis", "redis"])(
    "that stands still when a client comes: locks of the others can be had, with %s",
    async (library) => {
      const { servers } = await startCluster();
      onTestFinished(async () => {
        await Promise.all(servers.map(({ server }) => server.remove()));
      });
      await letOthersServe(servers);
      servers[0]?.server.pause();
      const url = `${urlOf(servers.map(({ port }) => port))}?client=${library}`;
      // Which node is asked first is chance.
      for (let turn = 0; turn < 8; turn++) {
        const locks = new LockManager(redisBackend({ url, deadlineMs: 8_000 }));
        try {
          await (await locks.acquire(elsewhere ?? "")).release();
        } finally {
          await locks.close();
        }
      }
    },
    90_000,
  );
});
