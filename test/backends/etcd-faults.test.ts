/** The etcd backend on bad days: leaders that die or stand still, leases that are revoked, histories that are compacted away. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type EtcdNode, startEtcd, TcpProxy } from "../../scripts/lib/for-tests.mjs";
import { etcdBackend } from "../../src/backends/etcd/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import type { Violation } from "../../src/verify/index.ts";
import { etcdctl, isByStaleLeader, leaderOf, startOne } from "../helpers/etcd.ts";
import { EndedWithLease } from "../helpers/etcd-ended.ts";
import { ask, keys, leases } from "../helpers/etcd-store.ts";
import { expectValid, now, Recorded } from "../helpers/recorded.ts";

let nodes: EtcdNode[] = [];
let proxies: TcpProxy[] = [];
let managers: LockManager[] = [];

afterEach(async () => {
  for (const node of nodes) node.resume();
  await Promise.all(managers.map((locks) => locks.close()));
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(nodes.map((node) => node.remove()));
  [nodes, proxies, managers] = [[], [], []];
});

async function start(count: number): Promise<readonly EtcdNode[]> {
  nodes = count === 1 ? [await startOne()] : await startEtcd(count);
  return nodes;
}

async function open(endpoints: readonly string[], label = ""): Promise<LockManager> {
  const locks = await connect(etcdBackend({ endpoints, prefix: "f/", callMs: 1_000, pingMs: 500 }), {
    label,
  });
  managers.push(locks);
  return locks;
}

/** What is left when all clients have closed: the last keys and leases may still be on their way out. */
async function leaks(endpoint: string): Promise<Record<string, number>> {
  await Promise.all(managers.map((locks) => locks.close()));
  let left = { keys: -1, leases: -1 };
  const clean = async (): Promise<number> => {
    left = { keys: (await keys(endpoint, "f/")).length, leases: (await leases(endpoint)).length };
    return left.keys + left.leases;
  };
  await expect.poll(clean, { timeout: 15_000, interval: 200 }).toBe(0);
  return left;
}

/** Runs a workload on a cluster of three while somebody breaks it, for a time and until so many were granted; judges what was seen. */
async function onBadDays(
  { ttlMs, forMs, grants }: { readonly ttlMs: number; readonly forMs: number; readonly grants: number },
  breakIt: (recorded: Recorded) => Promise<void>,
  isExcused: (violation: Violation, ended: EndedWithLease) => boolean = () => false,
): Promise<void> {
  const endpoints = (await start(3)).map(({ endpoint }) => endpoint);
  const ended = new EndedWithLease(endpoints, "f/");
  onTestFinished(() => ended.close());
  const recorded = new Recorded({ names: ["a", "b"], ttlMs, holdMs: 300, waitMs: 10_000 });
  const loops: Promise<void>[] = [];
  for (const proc of ["p1", "p2", "p3", "p4"]) loops.push(recorded.loop(proc, await open(endpoints, proc)));
  const until = performance.now() + forMs;
  while (performance.now() < until || recorded.grants <= grants) await breakIt(recorded);
  await sleep(2_000);
  recorded.stop();
  await Promise.all(loops);
  const { violations, doubts } = recorded.judge(await leaks(endpoints[0] ?? ""), { limit: 1_000 });
  expectValid({ violations: violations.filter((violation) => !isExcused(violation, ended)), doubts });
}

describe("three nodes", () => {
  it("with the leader killed every three seconds, there is one holder at most, and work goes on", async () => {
    await onBadDays({ ttlMs: 3_000, forMs: 12_000, grants: 20 }, async (history) => {
      const leader = await leaderOf(nodes);
      const healed = history.fault("kill", leader.endpoint);
      await leader.kill();
      await sleep(1_500);
      await leader.start();
      healed();
      await sleep(1_500);
    });
  }, 90_000);

  it("with the leader paused past the ttl, two believe at most where etcd has just ended a lease that was alive", async () => {
    const resumes: bigint[] = [];
    await onBadDays(
      { ttlMs: 2_000, forMs: 10_000, grants: 20 },
      async (history) => {
        const leader = await leaderOf(nodes);
        const healed = history.fault("pause", leader.endpoint);
        leader.pause();
        await sleep(4_000);
        resumes.push(now());
        leader.resume();
        healed();
        await sleep(2_000);
      },
      (violation, ended) => isByStaleLeader(violation, resumes, ended),
    );
  }, 90_000);

  it("a holder keeps its lock although the node that it talks to stands still", async () => {
    const cluster = await start(3);
    const [first, ...others] = await Promise.all(cluster.map(({ port }) => TcpProxy.start(port)));
    if (first === undefined) throw new Error("no proxy");
    proxies = [first, ...others];
    const locks = await open(proxies.map(({ port }) => `http://127.0.0.1:${port}`));
    const lock = await locks.acquire("kept", { ttl: 4_000 });
    for (let turn = 0; turn < 2; turn++) {
      const used = proxies.find(({ connections }) => connections > 0);
      used?.blackhole();
      await sleep(4_000);
      expect(lock.held).toBe(true);
      used?.heal();
    }
    expect(await lock.release()).toBe("released");
  }, 30_000);
});

describe("leases that others revoke", () => {
  const revoke = (node: EtcdNode, id: string): Promise<string> =>
    ask(node.endpoint, "lease/revoke", { ID: id });

  it("a holder is told at once", async () => {
    const [node] = await start(1);
    if (node === undefined) throw new Error("no node");
    const locks = await open([node.endpoint]);
    const lock = await locks.acquire("a", { ttl: 20_000 });
    const lost = new Promise<void>((resolve) => {
      lock.signal.addEventListener("abort", () => resolve());
    });
    for (const id of await leases(node.endpoint)) await revoke(node, id);
    await lost;
    expect(lock.held).toBe(false);
    expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    // The next one gets a lease that exists.
    const next = await locks.acquire("a", { ttl: 20_000 });
    expect(next.held).toBe(true);
    await next.release();
  });

  it("a waiter never believes that it holds, joins again, and gets the lock in the end", async () => {
    const [node] = await start(1);
    if (node === undefined) throw new Error("no node");
    const [holder, waiter] = [await open([node.endpoint]), await open([node.endpoint])];
    const recorded = new Recorded({ names: ["a"], ttlMs: 20_000, holdMs: 50, waitMs: 15_000 });
    const held = await holder.acquire("a", { ttl: 20_000 });
    const before = await leases(node.endpoint);
    const waits = recorded.once("waiter", waiter, "a");
    await expect.poll(() => keys(node.endpoint, "f/a/")).toHaveLength(2);
    const own = (await leases(node.endpoint)).filter((id) => !before.includes(id));
    for (const id of own) await revoke(node, id);
    // Right after its entry has died, the lock becomes free.
    expect(await held.release()).toBe("released");
    await waits;
    expect(recorded.grants).toBe(1);
    expectValid(recorded.judge(await leaks(node.endpoint)));
  }, 40_000);
});

describe("compaction", () => {
  it("of all that a holder has seen does not keep it from hearing that its lock was stolen", async () => {
    const [node] = await start(1);
    if (node === undefined) throw new Error("no node");
    const [holder, thief] = [await open([node.endpoint]), await open([node.endpoint])];
    const lock = await holder.acquire("a", { ttl: 30_000 });
    await holder.request("b", () => {});
    const revision = /"revision":"(\d+)"/.exec(await ask(node.endpoint, "kv/range", { key: "YQ==" }))?.[1];
    await ask(node.endpoint, "kv/compaction", { revision });
    // By now it watches its entry, and the next renewal is far away.
    await sleep(2_000);
    await thief.request("a", { steal: true }, () => {});
    await expect.poll(() => lock.signal.aborted, { timeout: 3_000 }).toBe(true);
  }, 30_000);

  it("in a loop under a hundred waiters, with connections cut, hangs nobody", async () => {
    const [node] = await start(1);
    if (node === undefined) throw new Error("no node");
    const proxy = await TcpProxy.start(node.port);
    proxies = [proxy];
    const recorded = new Recorded({ names: ["a"], ttlMs: 10_000, holdMs: 20, waitMs: 60_000 });
    const clients = await Promise.all(
      Array.from({ length: 4 }, (_, turn) => open([`http://127.0.0.1:${proxy.port}`], `c${turn}`)),
    );
    const waits = Array.from({ length: 100 }, (_, turn) => {
      const client = clients[turn % 4];
      if (client === undefined) throw new Error("no client");
      return recorded.once(`w${turn}`, client, "a");
    });
    const over = new AbortController();
    const compacting = (async () => {
      for (let turn = 1; !over.signal.aborted; turn++) {
        const revision = /"revision":"(\d+)"/.exec(
          await ask(node.endpoint, "kv/range", { key: "YQ==" }),
        )?.[1];
        // It may be compacted up to there already.
        await ask(node.endpoint, "kv/compaction", { revision }).catch(() => {});
        if (turn % 20 === 0) proxy.resetAll();
        await sleep(20);
      }
    })();
    await Promise.all(waits);
    over.abort();
    await compacting;
    expect(recorded.grants).toBe(100);
    expectValid(recorded.judge(await leaks(node.endpoint)));
  }, 90_000);
});

describe("refusals", () => {
  it("of a store that is full are typed, and a lock that is held can be released", async () => {
    nodes = [await startOne({ args: ["--quota-backend-bytes=1000000"] })];
    const [node] = nodes;
    if (node === undefined) throw new Error("no node");
    const locks = await open([node.endpoint]);
    const lock = await locks.acquire("a");
    const filler = Buffer.alloc(400_000, "x").toString("base64");
    const fill = async (): Promise<void> => {
      for (let turn = 0; turn < 10; turn++)
        await ask(node.endpoint, "kv/put", { key: `Zg==`, value: filler });
    };
    await expect(fill()).rejects.toThrow(/space exceeded/);
    await expect(locks.acquire("b")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("the store is full"),
    });
    expect(await lock.release()).toBe("released");
  });

  it("of a user without rights are typed, and say what to do", async () => {
    nodes = [await startOne()];
    const [node] = nodes;
    if (node === undefined) throw new Error("no node");
    await etcdctl(node, "user", "add", "root:secret");
    await etcdctl(node, "user", "grant-role", "root", "root");
    await etcdctl(node, "user", "add", "weak:word");
    await etcdctl(node, "auth", "enable");
    const as = async (auth?: { user: string; password: string }): Promise<unknown> => {
      const locks = await connect(etcdBackend({ endpoints: [node.endpoint], auth }));
      managers.push(locks);
      return locks.acquire("a").then(
        (lock) => lock.held,
        (error: unknown) => error,
      );
    };
    const refused = (message: RegExp): object => ({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringMatching(message),
    });
    expect(await as({ user: "root", password: "secret" })).toBe(true);
    expect(await as({ user: "weak", password: "word" })).toMatchObject(refused(/permission denied.*grant/));
    expect(await as({ user: "root", password: "wrong" })).toMatchObject(refused(/check user and password/));
    expect(await as()).toMatchObject(refused(/give auth/));
  });

  it("of clients that a cluster did not ask who they are, and now does, are heard once: they say it", async () => {
    const [node] = await start(1);
    if (node === undefined) throw new Error("no node");
    await etcdctl(node, "user", "add", "root:secret");
    await etcdctl(node, "user", "grant-role", "root", "root");
    const auth = { user: "root", password: "secret" };
    const [holder, waiter] = await Promise.all(
      [0, 1].map(async () => {
        const locks = await connect(etcdBackend({ endpoints: [node.endpoint], auth }));
        managers.push(locks);
        return locks;
      }),
    );
    const held = await holder?.acquire("a", { ttl: 6_000 });
    await waiter?.request("b", () => {});
    await etcdctl(node, "auth", "enable");
    const startedAt = performance.now();
    const waits = waiter?.request("a", () => performance.now());
    await sleep(3_000);
    expect(held?.held).toBe(true);
    expect(await held?.release()).toBe("released");
    expect((await waits) ?? 0).toBeLessThan(startedAt + 4_000);
  }, 20_000);
});
