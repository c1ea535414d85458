/** The Redlock backend while its nodes fail: typed errors, no wrong grant, nothing left behind; and beside locks of other kinds. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { ask, startProxy } from "../../scripts/lib/redis-servers.mjs";
import { redlockBackend, type RedlockSettings } from "../../src/backends/redlock/index.ts";
import { connect } from "../../src/connect.ts";
import { LockManager } from "../../src/core/manager.ts";
import { blockedDuring } from "../helpers/blocked-loop.ts";
import { makeClocks } from "../helpers/clocks.ts";
import { safeIoredis } from "../helpers/redis.ts";
import { startServers, type Servers, urlOf } from "../helpers/redlock.ts";

const ends: Array<() => Promise<unknown>> = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function servers(count: number, ...args: readonly string[]): Promise<Servers> {
  const started = await startServers(count, { args });
  ends.push(() => started.close());
  return started;
}

function locksAt(url: string, settings: RedlockSettings = {}): LockManager {
  const locks = new LockManager(redlockBackend({ url, quarantineMs: 0, ...settings }));
  ends.push(() => locks.close());
  return locks;
}

async function eventually(isSo: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms`);
    await sleep(20);
  }
}

/** On how many nodes a key is. */
async function nodesWith({ lookers }: Servers, key: string): Promise<number> {
  const found = await Promise.all(lookers.map((looker) => looker.exists(key)));
  return found.filter(Boolean).length;
}

/** Waits until a client reaches all nodes: a majority is enough for a grant, and others may be just connecting. */
async function reachAll(locks: LockManager, fleet: Servers): Promise<void> {
  const lock = await locks.acquire("warm");
  await eventually(async () => (await nodesWith(fleet, "warm")) === fleet.servers.length);
  await lock.release();
}

/** What Node warns of until the end of the case. */
function warned(): readonly Error[] {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", onWarning);
  ends.push(async () => process.off("warning", onWarning));
  return warnings;
}

describe("nodes that fail", () => {
  it("that were never reached are said to be so, and not to have broken off", async () => {
    const error: unknown = await connect("redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3").catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringMatching(
        /at most 1 of 3 nodes can vote, and 2 have to agree; 127\.0\.0\.1:\d: there is no connection/,
      ),
    });
  });

  it("are not those that have answered while the process stood still", async () => {
    const fleet = await servers(3);
    const backend = redlockBackend({ url: fleet.url, quarantineMs: 0, deadlineMs: 1_000 });
    ends.push(() => backend.close());
    const owner = { client: "c", host: "h", pid: 1 };
    await eventually(() =>
      backend.list("any").then(
        () => true,
        () => false,
      ),
    );
    for (let turn = 0; turn < 3; turn++) {
      const entry = { id: `c.${turn}`, owner, mode: "write", weight: 1, ttlMs: 20_000 } as const;
      const said = await blockedDuring(1_500, () => backend.append(`job-${turn}`, entry));
      expect(said?.ahead.count).toBe(0);
    }
  });

  it("a minority that is down or stands still is not waited for", async () => {
    const fleet = await servers(5);
    const locks = locksAt(fleet.url, { deadlineMs: 5_000 });
    await reachAll(locks, fleet);
    fleet.servers[0]?.server.pause();
    await fleet.servers[1]?.server.kill();
    const started = performance.now();
    const lock = await locks.acquire("a", { ttl: "1500ms" });
    expect(await locks.tryAcquire("a")).toBeNull();
    expect(performance.now() - started).toBeLessThan(1_500);
    await sleep(2_000);
    expect(lock.held, "it was renewed by the others").toBe(true);
    expect(await lock.release()).toBe("released");
    fleet.servers[0]?.server.resume();
    await eventually(async () => (await fleet.lookers[0]?.exists("a")) === 0);
  });

  it("a majority that is down: unavailable, with what each node said; held locks are lost in time; and back again", async () => {
    const fleet = await servers(3);
    const locks = locksAt(fleet.url);
    await reachAll(locks, fleet);
    const lock = await locks.acquire("a", { ttl: "1s" });
    for (const node of [0, 1]) await fleet.servers[node]?.server.kill();
    const failure: unknown = await locks.acquire("b", { ttl: "1s" }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LOCK_UNAVAILABLE", retryable: true, backend: "redlock" });
    expect(String(failure)).toMatch(
      /1 of 3 nodes can vote, and 2 have to agree; 127\.0\.0\.1:\d+: .*; 127\.0\.0\.1/,
    );
    await expect(locks.tryAcquire("a"), "whether it is held or not").rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
    });
    await eventually(() => lock.signal.aborted, 2_000);
    for (const node of [0, 1]) await fleet.servers[node]?.server.start();
    await eventually(async () => (await locks.tryAcquire("c").catch(() => null)) !== null);
  });

  it("a majority that stands still: given up within the deadline, and nothing is left when it goes on", async () => {
    const fleet = await servers(3);
    const locks = locksAt(fleet.url);
    await reachAll(locks, fleet);
    for (const node of [0, 1]) fleet.servers[node]?.server.pause();
    const warnings = warned();
    const started = performance.now();
    // Each in a turn of its own: they do not travel together, and come to their deadline together.
    const many: Promise<unknown>[] = [];
    for (let index = 0; index < 30; index++) {
      many.push(locks.acquire(`many-${index}`, { ttl: "30s" }));
      await immediate();
    }
    for (const { status } of await Promise.allSettled(many)) expect(status).toBe("rejected");
    expect(warnings, "a connection is given up once").toEqual([]);
    await expect(locks.acquire("a", { ttl: "30s" })).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await expect(locks.tryAcquire("b", { ttl: "30s" })).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(performance.now() - started).toBeLessThan(5_000);
    for (const node of [0, 1]) fleet.servers[node]?.server.resume();
    await eventually(async () => (await nodesWith(fleet, "a")) + (await nodesWith(fleet, "b")) === 0);
    await (await locks.acquire("a", { wait: "5s" })).release();
  });

  it("a node that was restarted empty gets the lock again, while the majority stands", async () => {
    const fleet = await servers(3);
    const locks = locksAt(fleet.url);
    await reachAll(locks, fleet);
    const lock = await locks.acquire("a", { ttl: "1500ms" });
    await fleet.lookers[0]?.set("mark", "1");
    await fleet.servers[0]?.server.kill();
    await fleet.servers[0]?.server.start();
    // It is empty, and may have got the lock again by now.
    expect(await fleet.lookers[0]?.exists("mark")).toBe(0);
    await eventually(async () => (await nodesWith(fleet, "a")) === 3, 3_000);
    expect(lock.held).toBe(true);
    expect(await lock.release()).toBe("released");
    expect(await nodesWith(fleet, "a")).toBe(0);
  });

  it("a majority that was restarted empty: the lock is lost, and not taken again in silence", async () => {
    const fleet = await servers(3);
    const locks = locksAt(fleet.url);
    await reachAll(locks, fleet);
    const lock = await locks.acquire("a", { ttl: "3s" });
    for (const node of [0, 1]) await fleet.servers[node]?.server.kill();
    for (const node of [0, 1]) await fleet.servers[node]?.server.start();
    await eventually(() => lock.signal.aborted, 4_000);
    expect(String(lock.signal.reason)).toMatch(/does not have it any more/);
    expect(await nodesWith(fleet, "a")).toBeLessThanOrEqual(1);
    expect(await lock.release()).toBe("gone");
  });

  it("fresh servers without persistence are in quarantine, and say so; with it they count at once", async () => {
    const [fresh, durable] = [
      await servers(3),
      await servers(3, "--appendonly", "yes", "--appendfsync", "always"),
    ];
    const failure = await locksAt(fresh.url, { quarantineMs: 60_000 })
      .acquire("a")
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(String(failure)).toMatch(
      /it was restarted, and may have forgotten who holds: it counts again in \d+ ms/,
    );
    const locks = locksAt(durable.url, { quarantineMs: 60_000 });
    expect((await locks.acquire("a", { ttl: "60s" })).held).toBe(true);
    await expect(locks.acquire("b", { ttl: "61s" })).rejects.toMatchObject({ code: "LOCK_INVALID" });
  });
});

describe("answers that come late or not at all", () => {
  it("a lock whose time is used up when the nodes agree is refused, and let go", async () => {
    const fleet = await servers(3);
    const proxies = await Promise.all(fleet.servers.map(({ port }) => startProxy(port)));
    for (const proxy of proxies) ends.push(() => proxy.close());
    const locks = locksAt(urlOf(proxies), { deadlineMs: 3_000 });
    await reachAll(locks, fleet);
    for (const proxy of proxies) proxy.down.delayMs = 750;
    // A quarter of the ttl is what they have; the keys live on until they are let go.
    await expect(locks.acquire("a", { ttl: "2s" })).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect((await locks.acquire("b", { ttl: "10s" })).held).toBe(true);
    await eventually(async () => (await nodesWith(fleet, "a")) === 0, 300);
  });

  it("a node to which connecting takes longer than an answer may is reached in the midst of requests", async () => {
    const fleet = await servers(3);
    const proxy = await startProxy(fleet.servers[2]?.port ?? 0);
    ends.push(() => proxy.close());
    // Several answers until it is let in, each within the deadline.
    proxy.down.delayMs = 200;
    const warnings = warned();
    const locks = locksAt(urlOf([...fleet.servers.slice(0, 2), proxy]), { deadlineMs: 300 });
    await eventually(async () => {
      const many = await Promise.all(Array.from({ length: 20 }, (_, index) => locks.acquire(`a-${index}`)));
      await sleep(20);
      const isThere = (await fleet.lookers[2]?.exists("a-0")) === 1;
      await Promise.all(many.map((lock) => lock.release()));
      return isThere;
    }, 8_000);
    expect(warnings).toEqual([]);
  });

  it("a retry is not in the way of what an earlier attempt left behind", async () => {
    const fleet = await servers(3);
    const proxies = await Promise.all(fleet.servers.map(({ port }) => startProxy(port)));
    for (const proxy of proxies) ends.push(() => proxy.close());
    const backend = redlockBackend({ url: urlOf(proxies), quarantineMs: 0, deadlineMs: 150 });
    ends.push(() => backend.close());
    const entry = {
      id: "one",
      owner: { client: "c", host: "h", pid: 1 },
      mode: "write",
      weight: 1,
      ttlMs: 30_000,
    } as const;
    await backend.ready();
    // Two nodes take it, and their answers are lost; nor do they hear that they are to let go.
    for (const proxy of proxies.slice(0, 2)) proxy.down.swallow = true;
    await expect(backend.append("a", entry)).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    for (const proxy of proxies.slice(0, 2)) proxy.heal();
    for (const looker of fleet.lookers.slice(0, 2)) await looker.set("a", "one\0c1\0[]", "PX", 30_000);
    let snapshot = null;
    await eventually(async () => {
      snapshot = await backend.append("a", entry).catch(() => null);
      return snapshot !== null;
    });
    expect(snapshot).toMatchObject({ self: { id: "one" }, ahead: { count: 0 } });
  });

  it("split votes settle, for even numbers of nodes too", async () => {
    for (const count of [2, 4]) {
      const fleet = await servers(count);
      const clients = Array.from({ length: 4 }, () => locksAt(fleet.url, { deadlineMs: 3_000 }));
      let [inside, most, served] = [0, 0, 0];
      const work = clients.flatMap((locks) =>
        Array.from({ length: 5 }, () =>
          locks.request("a", async () => {
            most = Math.max(most, ++inside);
            await sleep(1);
            inside -= 1;
            served += 1;
          }),
        ),
      );
      await Promise.all(work);
      expect([most, served]).toEqual([1, 20]);
      expect(await nodesWith(fleet, "a")).toBe(0);
    }
  });
});

describe("locks of other languages", () => {
  it.each([
    { count: 1, settings: {} },
    { count: 3, settings: {} },
    { count: 3, settings: { prefix: "lock:" } },
    { count: 3, settings: { fencing: false } },
  ])("on $count nodes, $settings: theirs blocks us, ours blocks theirs", async ({ count, settings }) => {
    const fleet = await servers(count);
    const locks = locksAt(fleet.url, { deadlineMs: 3_000, ...settings });
    const key = `${"prefix" in settings ? settings.prefix : ""}a`;
    const takeByHand = ["set", key, "their-own-value", "nx", "px"];
    const theirs = (...words: readonly string[]): Promise<string[]> =>
      Promise.all(fleet.servers.map(({ port }) => ask(port, ...words)));
    expect(new Set(await theirs(...takeByHand, "30000"))).toEqual(new Set(["OK"]));
    expect(await locks.tryAcquire("a")).toBeNull();
    // Longer than a busy machine takes for an answer: without any, it would not be known that it is busy.
    await expect(locks.acquire("a", { wait: 500 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    // Without a prefix it could be any key.
    const seen = key === "a" ? [] : [{ name: "a", clientId: "" }];
    expect((await locks.query()).held).toMatchObject(seen);
    const waiting = locks.acquire("a", { wait: "5s" });
    await theirs("del", key);
    const lock = await waiting;
    // A node from which theirs was deleted after we had a majority may be free.
    const taken = (await theirs(...takeByHand, "30000")).filter((answer) => answer === "OK").length;
    expect(taken).toBeLessThanOrEqual((count - 1) / 2);
    await lock.release();
    await theirs("del", key);
    expect(new Set(await theirs(...takeByHand, "100"))).toEqual(new Set(["OK"]));
    expect((await locks.acquire("a", { wait: "5s" })).held, "after theirs has expired").toBe(true);
  });

  it("without a prefix other data is not listed, and no lock is called like what the backend keeps for itself", async () => {
    const fleet = await servers(1);
    const { port } = fleet.servers[0] ?? { port: 0 };
    const locks = locksAt(fleet.url, { deadlineMs: 3_000 });
    await ask(port, "set", "cached", "some value", "px", "60000");
    await ask(port, "set", "setting", "for ever");
    await ask(port, "rpush", "list", "x");
    const lock = await locks.acquire("job");
    expect((await locks.query()).held).toMatchObject([{ name: "job", token: lock.token }]);
    await expect(locks.acquire("holdfast:redlock:counter")).rejects.toMatchObject({ code: "LOCK_INVALID" });
    await expect(locks.request("holdfast:redlock:counter", { steal: true }, () => {})).rejects.toMatchObject({
      code: "LOCK_INVALID",
    });
    await lock.release();
    const backend = redlockBackend({ url: fleet.url });
    ends.push(() => backend.close());
    await backend.ready();
    expect((await backend.examine()).filter(({ level }) => level === "problem")).toEqual([]);
  });

  it("the usual script of others frees theirs and never ours", async () => {
    const fleet = await servers(1);
    const { port } = fleet.servers[0] ?? { port: 0 };
    const locks = locksAt(fleet.url, { deadlineMs: 3_000 });
    const script =
      'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
    const free = (value: string): Promise<string> => ask(port, "eval", script, "1", "a", value);
    const lock = await locks.acquire("a");
    expect(await free("their-own-value")).toMatch(/0$/);
    expect(await lock.release()).toBe("released");
    await ask(port, "set", "a", "their-own-value", "nx", "px", "30000");
    const waiting = locks.acquire("a", { wait: "5s" });
    expect(await free("their-own-value")).toMatch(/1$/);
    expect((await waiting).held).toBe(true);
  });

  it("the user that the page shows may do all that is needed, and nobody is told on other channels", async () => {
    const fleet = await servers(3);
    const page = await readFile(new URL("../../docs/backends/redlock.md", import.meta.url), "utf8");
    const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
    for (const { port } of fleet.servers) await ask(port, ...line.split(" "));
    const url = fleet.url.replace("redlock://", "redlock://locks:password@");
    const [one, two] = [0, 1].map(() => locksAt(url, { prefix: "lock:", deadlineMs: 3_000 }));
    await (await one?.acquire("warm"))?.release();
    const lock = await one?.acquire("a", { ttl: "2s" });
    const waiting = two?.acquire("a", { wait: "5s" });
    await sleep(2_000);
    expect(lock?.held, "it was renewed").toBe(true);
    expect((await two?.query())?.held).toMatchObject([{ name: "a" }]);
    await lock?.release();
    expect((await waiting)?.held).toBe(true);
    for (const looker of fleet.lookers) expect(await looker.call("acl", "log")).toEqual([]);
  });

  it("a key that is no lock at all: that node does not vote", async () => {
    const fleet = await servers(3);
    const locks = locksAt(fleet.url, { deadlineMs: 3_000 });
    await ask(fleet.servers[0]?.port ?? 0, "rpush", "a", "x");
    await (await locks.acquire("a")).release();
    await ask(fleet.servers[1]?.port ?? 0, "rpush", "a", "x");
    const failure: unknown = await locks.acquire("a").catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(String(failure)).toMatch(/somebody else uses keys with this prefix/);
  });
});

describe("what connect and doctor say", () => {
  it("the first call waits until a majority is connected, which takes longer than an answer", async () => {
    const fleet = await servers(3);
    const proxies = await Promise.all(fleet.servers.map(({ port }) => startProxy(port)));
    for (const proxy of proxies) ends.push(() => proxy.close());
    for (const proxy of proxies) proxy.down.delayMs = 120;
    const lock = await locksAt(urlOf(proxies), { deadlineMs: 250 }).acquire("a");
    expect(lock.held).toBe(true);
  });

  it("clients of Unix sockets are nodes of their own", async () => {
    const folder = await mkdtemp(join(tmpdir(), "redlock-"));
    ends.push(() => rm(folder, { recursive: true, force: true }));
    const paths = [1, 2, 3].map((node) => join(folder, `${node}.sock`));
    await Promise.all(paths.map((path) => servers(1, "--unixsocket", path)));
    const clients = paths.map((path) => new Redis({ path, ...safeIoredis }));
    ends.push(async () => clients.forEach((client) => client.disconnect()));
    const locks = new LockManager(redlockBackend({ clients, quarantineMs: 0, deadlineMs: 3_000 }));
    ends.push(() => locks.close());
    expect((await locks.acquire("a")).held).toBe(true);
    const [path = ""] = paths;
    const twice = [0, 1].map(() => new Redis({ path, ...safeIoredis, lazyConnect: true }));
    expect(() => redlockBackend({ clients: twice })).toThrow(`${path} is given twice`);
  });

  it("connect refuses what cannot be, and warns of nothing when all is well", async () => {
    const fleet = await servers(3);
    const url = `${fleet.url}?quarantineMs=0&health=ignore`;
    await expect(connect(url, { require: { order: "fifo" } })).rejects.toMatchObject({
      code: "LOCK_UNSUPPORTED",
    });
    await expect(connect(`${url}&fencing=false`, { require: { fencing: true } })).rejects.toMatchObject({
      code: "LOCK_UNSUPPORTED",
    });
    await expect(connect(`${url}&wrong=1`)).rejects.toMatchObject({ code: "LOCK_INVALID" });
    await expect(connect("redlock://100%:pw@127.0.0.1")).rejects.toMatchObject({ code: "LOCK_INVALID" });
    const twice = urlOf([{ port: 1 }, { port: 1 }]);
    await expect(connect(twice)).rejects.toMatchObject({ code: "LOCK_INVALID" });
    const many = urlOf(Array.from({ length: 32 }, (_, index) => ({ port: index + 1 })));
    await expect(connect(many)).rejects.toThrow("31 are the most");
    const locks = await connect(url, {
      require: { fencing: true, survives: ["process-restart", "store-pause"] },
    });
    ends.push(() => locks.close());
    await expect(locks.request("a", { mode: "shared" }, () => {})).rejects.toMatchObject({
      code: "LOCK_UNSUPPORTED",
    });
    await expect(locks.semaphore("a", 2).acquire()).rejects.toMatchObject({ code: "LOCK_UNSUPPORTED" });
    await expect(
      connect(`redlock://127.0.0.1:${fleet.servers[0]?.port},127.0.0.1:1,127.0.0.1:2`),
    ).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
    });
  });

  it("doctor compares clocks, and sees nodes that are away and locks that never end", async () => {
    const clocks = await makeClocks(3);
    ends.push(async () => void (await Promise.all(clocks.map((clock) => clock.remove()))));
    const fleet = await startServers(3, { env: (index) => ({ ...process.env, ...clocks[index]?.env }) });
    ends.push(() => fleet.close());
    const backend = redlockBackend({ url: fleet.url, prefix: "lock:" });
    ends.push(() => backend.close());
    const seen = async (level: string): Promise<string> =>
      (await backend.examine())
        .filter((finding) => finding.level === level)
        .map(({ about, seen: what }) => `${about}: ${what}`)
        .join("\n");
    await backend.ready();
    expect(await seen("problem")).toBe("");
    expect(await seen("warning")).toMatch(/^(uptime \(127\.0\.0\.1:\d+\): \d+ s, run \w{8}\n?){3}$/);
    await clocks[1]?.set(20_000);
    await ask(fleet.servers[2]?.port ?? 0, "set", "lock:stuck", "x");
    expect(await seen("warning")).toMatch(/clocks: at least (19|20)\d{3} ms apart/);
    expect(await seen("problem")).toMatch(/^stuck lock \(127\.0\.0\.1:\d+\): lock:stuck does not expire$/);
    await fleet.servers[0]?.server.kill();
    expect(await seen("warning")).toMatch(/majority: 2 of 3 answer, 2 have to agree/);
  });
});
