/** The Redis backend on a cluster of three primaries. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { slotOf } from "../../src/backends/redis/keys.ts";
import { redisBackend } from "../../src/backends/redis/index.ts";
import { LockManager } from "../../src/core/manager.ts";
import { ask, startCluster } from "../../scripts/lib/redis-servers.mjs";
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

/** Moves a slot with all its keys from the node that has it to another one. */
async function moveSlot(slot: number, from: number, to: number): Promise<void> {
  const ids = await Promise.all(cluster.servers.map(({ port }) => ask(port, "cluster", "myid")));
  const [source = 0, target = 0] = [cluster.servers[from]?.port, cluster.servers[to]?.port];
  const set = (port: number, ...words: readonly string[]): Promise<string> =>
    ask(port, "cluster", "setslot", String(slot), ...words);
  await set(target, "importing", ids[from] ?? "");
  await set(source, "migrating", ids[to] ?? "");
  for (;;) {
    const keys = (await ask(source, "cluster", "getkeysinslot", String(slot), "100"))
      .split("\n")
      .filter(Boolean);
    if (keys.length === 0) break;
    await ask(source, "migrate", "127.0.0.1", String(target), "", "0", "5000", "keys", ...keys);
  }
  for (const { port } of cluster.servers) await set(port, "node", ids[to] ?? "");
}

async function ownerOf(slot: number): Promise<number> {
  const nodes = await ask(cluster.servers[0]?.port ?? 0, "cluster", "nodes");
  const line = nodes.split("\n").find((each) =>
    each
      .split(" ")
      .slice(8)
      .some((range) => {
        const [first = "", last = first] = range.split("-");
        return /^\d+$/.test(first) && slot >= Number(first) && slot <= Number(last);
      }),
  );
  return cluster.servers.findIndex(({ port }) => line?.includes(`:${port}@`));
}

describe.each(["ioredis", "redis"] as const)("resharding under load, with %s", (library) => {
  it("moves the queue of a lock while it is fought for, and nobody holds twice", async () => {
    const prefix = `move-${library}:`;
    const slot = slotOf(`${prefix}{counter}`);
    const open = (): LockManager =>
      new LockManager(redisBackend({ url: `${url}?client=${library}`, prefix, deadlineMs: 5_000 }));
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
        const from = await ownerOf(slot);
        await moveSlot(slot, from, (from + 1) % 3);
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
    expect(failures.length).toBeLessThan(10);
    expect(await keysWith(prefix)).toEqual([]);
  }, 120_000);
});
