/** The ZooKeeper backend on bad days: servers killed and frozen, clients paused and cut off, answers lost, nodes deleted, counts used up. */
import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TcpProxy, type ZooServer } from "../../scripts/lib/zookeeper-for-tests.mjs";
import { type ZooKeeperOptions, zookeeperBackend } from "../../src/backends/zookeeper/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { type Build, build } from "../helpers/child.ts";
import { FrameProxy } from "../helpers/frame-proxy.ts";
import { startHolder } from "../helpers/holder.ts";
import type { LineProcess } from "../helpers/line-process.ts";
import { rejection } from "../helpers/promises.ts";
import { expectValid, Recorded } from "../helpers/recorded.ts";
import { litterBelow, rawSession, started, type ZooRig } from "../helpers/zookeeper.ts";

const tickMs = 100;
let built: Build;
let rigs: ZooRig[] = [];
let proxies: TcpProxy[] = [];
let managers: LockManager[] = [];
let children: LineProcess[] = [];

beforeAll(async () => {
  built = await build();
}, 60_000);
afterAll(() => built.remove());
afterEach(async () => {
  for (const { servers } of rigs) for (const server of servers) server.resume();
  for (const child of children) child.kill();
  await Promise.all(managers.map((locks) => locks.close()));
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(rigs.map((rig) => rig.close()));
  [rigs, proxies, managers, children] = [[], [], [], []];
});

async function start(count: number, options: Parameters<typeof started>[1] = {}): Promise<ZooRig> {
  const rig = await started(count, options);
  rigs.push(rig);
  return rig;
}

async function proxied(port: number): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(port);
  proxies.push(proxy);
  return proxy;
}

async function open(hosts: string, options: Partial<ZooKeeperOptions> = {}): Promise<LockManager> {
  const locks = await connect(zookeeperBackend({ hosts, root: "/f", tickMs, ...options }));
  managers.push(locks);
  return locks;
}

/** An ensemble with a follower whose ways to the other two lead over proxies. */
async function withFollower(): Promise<{ first: string; others: string; cut: readonly TcpProxy[] }> {
  const cut: TcpProxy[] = [];
  const rig = await start(3, {
    // Only the first server reaches the others by proxies; its peers cannot lead without it, and it not without them.
    between: async (from, to, port) => {
      if (from !== 0 && to !== 0) return port;
      const proxy = await proxied(port);
      cut.push(proxy);
      return proxy.port;
    },
  });
  const first = only(rig);
  if ((await first.mode()) === "leader") {
    // It must follow: another leads while it is away.
    await first.kill();
    await serverWith(rig, "leader");
    await first.start();
  }
  const [host = "", ...others] = rig.servers.map(({ port }) => `127.0.0.1:${port}`);
  return { first: host, others: others.join(","), cut };
}

const only = (rig: ZooRig): ZooServer => {
  const [server] = rig.servers;
  if (server === undefined) throw new Error("no server was started");
  return server;
};

async function serverWith(rig: ZooRig, mode: "leader" | "follower"): Promise<ZooServer> {
  for (let tries = 0; tries < 200; tries++) {
    for (const server of rig.servers) {
      const is = await server.mode().catch(() => "none");
      if (is === mode) return server;
    }
    await sleep(50);
  }
  throw new Error(`there is no ${mode}`);
}

/** What is left when all clients have closed: the last nodes may still be on their way out. */
async function leaks(hosts: string): Promise<{ nodes: number }> {
  await Promise.all(managers.map((locks) => locks.close()));
  const clean = async (): Promise<number> => (await litterBelow(hosts, "/f")).length;
  await expect.poll(clean, { timeout: 15_000, interval: 200 }).toBe(0);
  return { nodes: 0 };
}

/** Runs a workload while somebody breaks the servers, for a time and until so many were granted; judges what was seen. */
async function onBadDays(
  rig: ZooRig,
  { ttlMs, forMs, grants }: { readonly ttlMs: number; readonly forMs: number; readonly grants: number },
  breakIt: (recorded: Recorded) => Promise<void>,
): Promise<Recorded> {
  const recorded = new Recorded({ names: ["a", "b"], ttlMs, holdMs: 200, waitMs: 15_000 });
  const loops: Promise<void>[] = [];
  for (const proc of ["p1", "p2", "p3", "p4"]) loops.push(recorded.loop(proc, await open(rig.hosts)));
  const until = performance.now() + forMs;
  while (performance.now() < until || recorded.grants <= grants) await breakIt(recorded);
  await sleep(1_000);
  recorded.stop();
  await Promise.all(loops);
  expectValid(recorded.judge(await leaks(rig.hosts)));
  return recorded;
}

describe("three servers", () => {
  it.each(["leader", "follower"] as const)(
    "with the %s killed again and again, there is one holder at most, and work goes on",
    async (mode) => {
      const rig = await start(3);
      await onBadDays(rig, { ttlMs: 3_000, forMs: 9_000, grants: 20 }, async (history) => {
        const server = await serverWith(rig, mode);
        const healed = history.fault("kill", `${mode} ${server.port}`);
        await server.kill();
        await sleep(1_000);
        await server.start();
        healed();
        await sleep(1_500);
      });
    },
    90_000,
  );

  it("with the leader frozen for longer than sessions live, there is one holder at most", async () => {
    const rig = await start(3);
    await onBadDays(rig, { ttlMs: 1_000, forMs: 8_000, grants: 10 }, async (history) => {
      const server = await serverWith(rig, "leader");
      const healed = history.fault("pause", `leader ${server.port}`);
      server.pause();
      await sleep(3_000);
      server.resume();
      healed();
      await sleep(1_500);
    });
  }, 90_000);

  // A follower goes on giving pongs until it notices that it has lost its leader: they prove nothing.
  it("a holder whose server is cut off from the leader stops believing before another is granted", async () => {
    const { first, others, cut } = await withFollower();
    const [locks, rival] = [await open(first), await open(others)];
    const lock = await locks.acquire("a", { ttl: 1_000 });
    const waiting = rival.acquire("a", { ttl: 1_000, wait: 15_000 });
    await sleep(200);
    let lostAt = 0;
    lock.signal.addEventListener("abort", () => {
      lostAt = performance.now();
    });
    for (const proxy of cut) proxy.blackhole();
    const next = await waiting;
    expect(lock.held).toBe(false);
    expect(lostAt).toBeGreaterThan(0);
    expect(next.token).toBeGreaterThan(lock.token);
    await next.release();
  }, 60_000);

  it("an entry that was taken out is not found again at a server that is behind", async () => {
    const { first, others, cut } = await withFollower();
    const [ours, rival] = [first, others].map((hosts) => zookeeperBackend({ hosts, root: "/f", tickMs }));
    if (ours === undefined || rival === undefined) throw new Error("two clients were asked for");
    const owner = { client: "c", host: "h", pid: 1 };
    const entry = { id: "c.1", owner, mode: "write", weight: 1, ttlMs: 10_000 } as const;
    const before = await ours.append("a", entry);
    for (const proxy of cut) for (const lane of [proxy.up, proxy.down]) lane.delayMs = 200;
    expect(await rival.remove("a", entry.id, true)).toBe(true);
    const after = await ours.append("a", entry);
    expect(after?.self.seq).toBeGreaterThan(before?.self.seq ?? 0n);
    for (const proxy of cut) proxy.heal();
    await Promise.all([ours.close(), rival.close()]);
  }, 60_000);
});

describe("a client", () => {
  it("that is paused past its session does not believe when it wakes up, and its token is older", async () => {
    const rig = await start(1);
    const backend = { hosts: rig.hosts, root: "/f", tickMs };
    const holder = startHolder(built, { backend, lock: "a", ttl: 1_000 });
    children.push(holder);
    const [, token] = (await holder.hear()).split(" ");
    const locks = await open(rig.hosts);
    const waiting = locks.acquire("a", { wait: 10_000 });
    await sleep(100);
    holder.pause();
    const lock = await waiting;
    expect(lock.token).toBeGreaterThan(BigInt(token ?? 0));
    holder.resume();
    holder.tell("held");
    expect([await holder.hear(), await holder.hear()].toSorted()).toEqual(["held false", "lost"]);
    expect(await holder.ask("release")).toBe("gone");
    expect(lock.held).toBe(true);
    await lock.release();
  });

  it("that looks while its session ends is answered by the next one", async () => {
    const rig = await start(1);
    const proxy = await FrameProxy.start(only(rig).port);
    const backend = zookeeperBackend({ hosts: `127.0.0.1:${proxy.port}`, root: "/f", tickMs });
    const nobody = { queue: "a", id: "nobody", seq: 1n, ttlMs: 1_000 };
    const looks = () =>
      Promise.all([
        backend.list("a"),
        backend.remove("a", "nobody"),
        backend.queues(""),
        backend.renew([nobody]).then(([renewed]) => renewed?.outcome),
      ]);
    try {
      expect(await looks()).toEqual([[], false, [], "gone"]);
      proxy.farewells = 1;
      proxy.refuse = true;
      proxy.resetAll();
      await sleep(100);
      const looking = looks();
      proxy.refuse = false;
      expect(await looking).toEqual([[], false, [], "gone"]);
      expect(proxy.farewells).toBeLessThan(1);
    } finally {
      await backend.close();
      await proxy.close();
    }
  });

  it("that is paused past its session while it waits joins again when it wakes up, and is granted", async () => {
    const rig = await start(1);
    const backend = { hosts: rig.hosts, root: "/f", tickMs };
    const looker = rawSession(rig.hosts);
    const queued = async (): Promise<number> => (await looker.getChildren("/f/a")).children.length;
    const locks = await open(rig.hosts);
    const holder = await locks.acquire("a", { ttl: 20_000 });
    const waiters = [1, 2, 3].map(() => startHolder(built, { backend, lock: "a", ttl: 1_000 }));
    children.push(...waiters);
    await expect.poll(queued, { timeout: 10_000 }).toBe(4);
    for (const waiter of waiters) waiter.pause();
    // The servers end their sessions.
    await expect.poll(queued, { timeout: 10_000 }).toBe(1);
    for (const waiter of waiters) waiter.resume();
    await expect.poll(queued, { timeout: 10_000 }).toBe(4);
    await holder.release();
    const said = waiters.map(async (waiter) => {
      const words = await waiter.hear();
      expect(await waiter.ask("release")).toBe("released");
      return words;
    });
    for (const words of await Promise.all(said)) expect(words).toMatch(/^granted/);
    await looker.close();
  }, 60_000);

  it("that has nothing to do but to wait outlives its connection", async () => {
    const rig = await start(1);
    const proxy = await proxied(only(rig).port);
    const looker = rawSession(rig.hosts);
    const locks = await open(rig.hosts);
    const holder = await locks.acquire("a", { ttl: 20_000 });
    const backend = { hosts: `127.0.0.1:${proxy.port}`, root: "/f", tickMs };
    const waiter = startHolder(built, { backend, lock: "a", ttl: 4_000 });
    children.push(waiter);
    await expect
      .poll(async () => (await looker.getChildren("/f/a")).children.length, { timeout: 10_000 })
      .toBe(2);
    // Time for its watch.
    await sleep(300);
    proxy.refuse = true;
    proxy.resetAll();
    await sleep(500);
    proxy.refuse = false;
    await holder.release();
    expect(await waiter.hear()).toMatch(/^granted/);
    await looker.close();
  }, 60_000);

  it("that is cut off for half of its session keeps its lock", async () => {
    const rig = await start(1);
    const cut = await proxied(only(rig).port);
    const [locks, rival] = [await open(`127.0.0.1:${cut.port}`), await open(rig.hosts)];
    const lock = await locks.acquire("a", { ttl: 3_000 });
    const waiting = rival.acquire("a", { wait: 20_000 });
    let granted = false;
    void waiting.then(() => {
      granted = true;
    });
    await sleep(200);
    cut.blackhole();
    await sleep(1_500);
    cut.heal();
    await sleep(4_000);
    expect([lock.held, granted]).toEqual([true, false]);
    expect(await lock.release()).toBe("released");
    expect((await waiting).token).toBeGreaterThan(lock.token);
  });

  it("that is cut off for twice its session loses its lock before another is granted, and goes on with a new one", async () => {
    const rig = await start(1);
    const cut = await proxied(only(rig).port);
    const [locks, rival] = [await open(`127.0.0.1:${cut.port}`), await open(rig.hosts)];
    const lock = await locks.acquire("a", { ttl: 1_000 });
    const order: string[] = [];
    lock.signal.addEventListener("abort", () => order.push("lost"));
    const waiting = rival.acquire("a", { wait: 20_000 }).then((next) => {
      order.push("granted");
      return next;
    });
    await sleep(100);
    cut.blackhole();
    await sleep(2_500);
    cut.heal();
    const next = await waiting;
    expect(order).toEqual(["lost", "granted"]);
    expect(await lock.release().catch(() => "unknown")).not.toBe("released");
    await next.release();
    const again = await locks.acquire("a", { wait: 10_000 });
    expect(again.token).toBeGreaterThan(next.token);
    await again.release();
    await leaks(rig.hosts);
  });

  it("that waits, and is told after a break that the entry ahead has left and then that its own has, does not believe in between", async () => {
    const rig = await start(1);
    const slow = await FrameProxy.start(only(rig).port);
    const [rival, locks] = [await open(rig.hosts), await open(`127.0.0.1:${slow.port}`)];
    const looker = rawSession(rig.hosts);
    const inQueue = async (): Promise<string[]> => (await looker.getChildren("/f/a")).children;
    await rival.acquire("a", { ttl: 20_000 });
    let granted = false;
    const waiting = locks.acquire("a", { ttl: 20_000 }).then((lock) => {
      granted = true;
      return lock;
    });
    await expect.poll(inQueue).toHaveLength(2);
    // Both of its watches stand by then.
    await sleep(300);
    slow.refuse = true;
    slow.resetAll();
    for (const entry of await inQueue()) await looker.delete(`/f/a/${entry}`);
    const next = await rival.acquire("a", { ttl: 20_000 });
    slow.gapMs = 50;
    slow.refuse = false;
    // It joins again, behind the one that holds.
    await expect.poll(inQueue, { timeout: 5_000 }).toHaveLength(2);
    expect(granted).toBe(false);
    await next.release();
    expect((await waiting).token).toBeGreaterThan(next.token);
    await Promise.all([looker.close(), slow.close()]);
  });

  it("whose answer to a create is lost finds its node again, and there is one", async () => {
    // The queue's node stays, so that a create is what is lost.
    const rig = await start(1, { containerMs: 600_000 });
    const cut = await proxied(only(rig).port);
    const locks = await open(`127.0.0.1:${cut.port}`);
    await (await locks.acquire("a")).release();
    const looker = rawSession(rig.hosts);
    for (let turn = 0; turn < 10; turn++) {
      cut.down.swallow = true;
      const asking = locks.acquire("a", { wait: 10_000 });
      await expect.poll(async () => (await looker.getChildren("/f/a")).children.length).toBe(1);
      const [before] = (await looker.getChildren("/f/a")).children;
      cut.heal();
      const lock = await asking;
      expect((await looker.getChildren("/f/a")).children).toEqual([before]);
      expect((await looker.exists(`/f/a/${before}`))?.czxid).toBe(lock.token);
      expect(await lock.release()).toBe("released");
    }
    expect((await looker.getChildren("/f/a")).children).toEqual([]);
    await looker.close();
  });

  it("that gives up on a request whose node may have been made takes it out when it is back", async () => {
    const rig = await start(1, { containerMs: 600_000 });
    const proxy = await proxied(only(rig).port);
    const locks = await open(`127.0.0.1:${proxy.port}`, { session: "10s", reach: "300ms" });
    await locks.request("a", { ttl: "1s" }, () => {});
    const looker = rawSession(rig.hosts);
    const entries = async (): Promise<number> => (await looker.getChildren("/f/a")).children.length;
    try {
      proxy.down.swallow = true;
      const refused = rejection(locks.acquire("a", { ttl: "1s" }));
      await expect.poll(entries).toBe(1);
      // Nobody is reached for longer than it tries, but not for as long as its session.
      proxy.refuse = true;
      proxy.resetAll();
      expect(await refused).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
      await sleep(4_000);
      proxy.heal();
      await expect.poll(entries, { timeout: 4_000, interval: 100 }).toBe(0);
    } finally {
      await looker.close();
    }
  }, 30_000);

  it("whose request is lost on the way asks again, in the same place", async () => {
    const rig = await start(1);
    const cut = await proxied(only(rig).port);
    const locks = await open(`127.0.0.1:${cut.port}`);
    await (await locks.acquire("a")).release();
    cut.up.swallow = true;
    const order: number[] = [];
    const asking = [1, 2, 3].map((turn) => locks.request("a", () => order.push(turn)));
    await sleep(50);
    cut.heal();
    asking.push(locks.request("a", () => order.push(4)));
    await Promise.all(asking);
    expect(order).toEqual([1, 2, 3, 4]);
    await leaks(rig.hosts);
  });

  it("through resets at random moments loses no count and leaves nothing", async () => {
    const rig = await start(1);
    const cut = await proxied(only(rig).port);
    const hosts = `127.0.0.1:${cut.port}`;
    let [grants, withinMs] = [0, 150];
    const recorded = await onBadDays(
      { ...rig, hosts },
      { ttlMs: 3_000, forMs: 5_000, grants: 20 },
      async (history) => {
        // A machine on which nobody is granted between two resets is given more time until somebody is.
        withinMs = history.grants > grants ? 150 : Math.min(1_500, withinMs * 1.2);
        grants = history.grants;
        await sleep(Math.random() * withinMs);
        history.fault("reset", "all connections")();
        cut.resetAll();
      },
    );
    expect(recorded.losses).toBe(0);
  }, 60_000);
});

describe("a queue", () => {
  it("whose node is deleted with all entries tells the holder; the next token is higher", async () => {
    const rig = await start(1);
    const locks = await open(rig.hosts);
    const looker = rawSession(rig.hosts);
    let highest = 0n;
    for (let turn = 0; turn < 5; turn++) {
      const lock = await locks.acquire("a", { ttl: 20_000 });
      expect(lock.token).toBeGreaterThan(highest);
      highest = lock.token;
      const waiting = locks.acquire("a");
      await sleep(60);
      const { children: nodes } = await looker.getChildren("/f/a");
      for (const node of nodes) await looker.delete(`/f/a/${node}`);
      await looker.delete("/f/a").catch(() => {});
      await expect.poll(() => lock.signal.aborted).toBe(true);
      expect(await lock.release()).toBe("gone");
      const next = await waiting;
      expect(next.token).toBeGreaterThan(highest);
      highest = next.token;
      await next.release();
      await looker.delete("/f/a").catch(() => {});
    }
    await looker.close();
  });

  it("whose count is used up still grants in order, one at a time", async () => {
    const rig = await start(1);
    const server = only(rig);
    await server.kill();
    const data = join(server.folder, "data");
    await rm(data, { recursive: true });
    await mkdir(data);
    const source = fileURLToPath(new URL("../helpers/java/SeedSequence.java", import.meta.url));
    const jars = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
    const silent = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off";
    const last = 2 ** 31 - 4;
    await promisify(execFile)("java", [silent, "-cp", jars, source, data, "/f/a", String(last)]);
    await server.start();
    const managersHere = [await open(rig.hosts), await open(rig.hosts), await open(rig.hosts)];
    const holder = await managersHere[0]?.acquire("a");
    const looker = rawSession(rig.hosts);
    const order: number[] = [];
    const asking: Promise<unknown>[] = [];
    for (let turn = 0; turn < 9; turn++) {
      const locks = managersHere[turn % 3];
      asking.push(locks?.request("a", () => order.push(turn)) ?? Promise.resolve());
      await expect.poll(async () => (await looker.getChildren("/f/a")).children.length).toBe(turn + 2);
    }
    const sequences = (await looker.getChildren("/f/a")).children.map((name) => name.slice(-10));
    expect(new Set(sequences).size).toBeLessThan(sequences.length);
    await holder?.release();
    await Promise.all(asking);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    await looker.close();
  }, 60_000);
});
