/** The Redis backend on a cluster of three primaries. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { Cluster as Cluster5 } from "ioredis-5";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { slotOf } from "../../src/backends/redis/keys.ts";
import { redisBackend } from "../../src/backends/redis/index.ts";
import { LockManager } from "../../src/core/manager.ts";
import { backendContract } from "../../src/testing/index.ts";
import { byUrl, connected, contractStore } from "../helpers/redis.ts";
import { type TestCluster, testCluster } from "../helpers/redis-cluster.ts";

const runner = { describe, it };
let cluster: TestCluster;

beforeAll(async () => {
  cluster = await testCluster();
});

afterAll(() => cluster.close());

for (const library of ["ioredis", "redis"] as const) {
  backendContract({
    name: `redis cluster, ${library}`,
    // To find all nodes takes longer than a short life.
    open: () => connected(contractStore(cluster.url, byUrl(library), (prefix) => cluster.keysWith(prefix))),
    runner,
    interleavings: 50,
  });
}

// While a node connects, ioredis cannot ask it how the cluster is: it gives up and begins anew, each time after a longer pause.
it.each([
  { version: 5, Client: Cluster5 },
  { version: 6, Client: Cluster },
])(
  "a client of ioredis $version is ready at its first try",
  async ({ Client }) => {
    const options = {
      lazyConnect: true,
      enableOfflineQueue: false,
      retryDelayOnFailover: 0,
      slotsRefreshTimeout: 30_000,
      redisOptions: { autoResendUnfulfilledCommands: false, connectTimeout: 30_000 },
    };
    // Which node it asks is chance, and one of the three is connected: so many do not all find that one.
    const clients = Array.from({ length: 16 }, () => {
      const client = new Client([{ host: "127.0.0.1", port: cluster.ports[0] ?? 0 }], options);
      client.on("error", () => {});
      return client;
    });
    let starts = 0;
    const backends = clients.map((client) => {
      client.on("connecting", () => (starts += 1));
      return redisBackend({ client, prefix: "first:", deadlineMs: 30_000 });
    });
    try {
      const ready = clients.map((client) => once(client, "ready"));
      const answers = backends.map((backend) => backend.list("any"));
      await Promise.all([...ready, ...answers]);
      expect(starts).toBe(clients.length);
    } finally {
      await Promise.all(backends.map((backend) => backend.close()));
      for (const client of clients) client.disconnect();
    }
  },
  60_000,
);

it.each([
  { version: 5, Client: Cluster5 },
  { version: 6, Client: Cluster },
])(
  "a client of ioredis $version that is handed in again and again gathers no listeners",
  async ({ Client }) => {
    const client = new Client([{ host: "127.0.0.1", port: cluster.ports[0] ?? 0 }], {
      lazyConnect: true,
      enableOfflineQueue: false,
      retryDelayOnFailover: 0,
      redisOptions: { autoResendUnfulfilledCommands: false },
    });
    client.on("error", () => {});
    const listeners = (): number[] =>
      [client, ...client.nodes("all")].flatMap((each) =>
        ["ready", "close", "end", "+node"].map((event) => each.listenerCount(event)),
      );
    const warnings: Error[] = [];
    const warned = (warning: Error): number => warnings.push(warning);
    process.on("warning", warned);
    try {
      const counts: number[][] = [];
      for (let turn = 0; turn < 3; turn++) {
        const backends = Array.from({ length: 12 }, (_, index) =>
          redisBackend({ client, prefix: `again-${index}:`, deadlineMs: 30_000 }),
        );
        await Promise.all(backends.map((backend) => backend.list("any")));
        await Promise.all(backends.map((backend) => backend.close()));
        counts.push(listeners());
      }
      expect(warnings).toEqual([]);
      expect(counts[2]).toEqual(counts[1]);
    } finally {
      process.off("warning", warned);
      client.disconnect();
    }
  },
  60_000,
);

// Each redirection was a refusal: what was refused may be sent again.
it("a slot that has moved is found though node-redis does not follow", async () => {
  const client = createCluster({
    rootNodes: [{ url: `redis://127.0.0.1:${cluster.ports[0]}` }],
    maxCommandRedirections: 0,
    defaults: { disableOfflineQueue: true },
  });
  client.on("error", () => {});
  const prefix = "follow:";
  const slot = slotOf(`${prefix}{any}`);
  const backend = redisBackend({ client, prefix, deadlineMs: 10_000 });
  try {
    await backend.list("any");
    const from = await cluster.ownerOf(slot);
    await cluster.moveSlot(slot, from, (from + 1) % 3);
    expect(await backend.remove("any", "nobody")).toBe(false);
  } finally {
    await backend.close();
    client.destroy();
  }
}, 60_000);

describe.each(["ioredis", "redis"] as const)("resharding under load, with %s", (library) => {
  it("moves the queue of a lock while it is fought for, and nobody holds twice", async () => {
    const prefix = `move-${library}:`;
    const slot = slotOf(`${prefix}{counter}`);
    const open = (): LockManager =>
      new LockManager(redisBackend({ url: `${cluster.url}?client=${library}`, prefix, deadlineMs: 5_000 }));
    const managers = [open(), open(), open()];
    const tokens: bigint[] = [];
    let [inside, wrong] = [0, 0];
    const over = new AbortController();
    const failures: string[] = [];
    const loops = managers.map(async (locks) => {
      while (!over.signal.aborted) {
        await locks
          .request("counter", { ttl: "10s" }, async (lock) => {
            inside += 1;
            if (inside > 1) wrong += 1;
            tokens.push(lock.token);
            await sleep(1);
            inside -= 1;
          })
          .catch((error: unknown) => failures.push(String(error)));
      }
    });
    try {
      for (let turn = 0; turn < 4; turn++) {
        await sleep(150);
        const from = await cluster.ownerOf(slot);
        await cluster.moveSlot(slot, from, (from + 1) % 3);
        const before = tokens.length;
        const movedAt = performance.now();
        while (tokens.length < before + 20 && performance.now() - movedAt < 15_000) await sleep(20);
        expect(tokens.length).toBeGreaterThanOrEqual(before + 20);
      }
    } finally {
      over.abort();
      await Promise.all(loops);
      await Promise.all(managers.map((locks) => locks.close()));
    }
    expect(wrong).toBe(0);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(failures.length, failures.slice(0, 20).join("\n")).toBeLessThan(10);
    expect(await cluster.keysWith(prefix)).toEqual([]);
  }, 120_000);

  it("waits for the end of a move that leaves neither server all the keys that a call names", async () => {
    const prefix = `between-${library}:`;
    const slot = slotOf(`${prefix}{alone}`);
    const url = `${cluster.url}?client=${library}`;
    const locks = new LockManager(redisBackend({ url, prefix, deadlineMs: 10_000 }));
    try {
      const answers: Promise<string>[] = [];
      // Of a queue of one there is one key.
      await locks.request("alone", { ttl: "10s" }, async () => {
        const from = await cluster.ownerOf(slot);
        await cluster.moveSlot(slot, from, (from + 1) % 3, async () => {
          answers.push(locks.request("alone", async () => "first"));
          answers.push(locks.request("alone", async () => "second"));
          // Longer than either library tries by itself.
          await sleep(3_000);
        });
      });
      expect(await Promise.all(answers)).toEqual(["first", "second"]);
      expect(await cluster.keysWith(prefix)).toEqual([]);
    } finally {
      await locks.close();
    }
  }, 60_000);
});
