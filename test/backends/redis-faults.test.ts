/** The Redis backend while its server fails: typed errors, no wrong grant, nothing left behind; with real servers and both libraries. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { afterEach, describe, expect, it } from "vitest";
import { ask, startProxy, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend, type RedisBackend, type RedisSettings } from "../../src/backends/redis/index.ts";
import { connect } from "../../src/connect.ts";
import { LockManager } from "../../src/core/manager.ts";
import { blockedDuring } from "../helpers/blocked-loop.ts";
import { track } from "../helpers/promises.ts";
import { handedIn, safeIoredis } from "../helpers/redis.ts";

const libraries = ["ioredis", "redis"] as const;
type Library = (typeof libraries)[number];

const ends: Array<() => Promise<unknown>> = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function server(...args: readonly string[]) {
  const started = await startRedis({ args });
  ends.push(() => started.server.remove());
  return started;
}

async function proxyTo(port: number) {
  const proxy = await startProxy(port);
  ends.push(() => proxy.close());
  return proxy;
}

function locksAt(port: number, library: Library, options: { deadlineMs?: number; login?: string } = {}) {
  const { deadlineMs = 1_000, login = "" } = options;
  const url = `redis://${login}127.0.0.1:${port}?client=${library}`;
  const backend = redisBackend({ url, deadlineMs, confirmWithinMs: Math.min(200, deadlineMs - 1) });
  const locks = new LockManager(backend);
  ends.push(() => locks.close());
  return locks;
}

/** Looks until something is so. */
async function eventually(isSo: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms`);
    await sleep(20);
  }
}

/** The last try may have found no connection at all. */
const unanswered = { code: expect.stringMatching(/^LOCK_(OUTCOME_UNKNOWN|UNAVAILABLE)$/), retryable: true };

const noKeys = async (port: number): Promise<boolean> => (await ask(port, "dbsize")) === "0";

describe.each(libraries)("with %s", (library) => {
  it("a frozen server: those of one client go on among themselves, and nobody else is let in", async () => {
    const { server: redis, port } = await server();
    const [locks, others] = [locksAt(port, library), locksAt(port, library)];
    const first = await locks.acquire("a");
    const mine = [track(locks.acquire("a")), track(locks.acquire("a"))];
    await eventually(async () => (await others.query()).pending.length === 2);
    const theirs = track(others.acquire("a"));
    await eventually(async () => (await locks.query()).pending.length === 3);
    redis.pause();
    const released = track(first.release());
    await eventually(() => mine[0]?.value?.held === true);
    const passedOn = track(mine[0]?.value?.release() ?? Promise.reject(new Error("it was not held")));
    await eventually(() => mine[1]?.value?.held === true);
    expect([released.status, passedOn.status, theirs.status]).toEqual(["pending", "pending", "pending"]);
    redis.resume();
    await eventually(() => passedOn.status !== "pending");
    expect(theirs.status).toBe("pending");
    expect(await mine[1]?.value?.release()).toBe("released");
    await eventually(() => theirs.value?.held === true);
    await theirs.value?.release();
    await eventually(() => noKeys(port));
  });

  it("a frozen server: given up within the deadlines, and nothing is left when it goes on", async () => {
    const { server: redis, port } = await server();
    const locks = locksAt(port, library);
    await (await locks.acquire("warm")).release();
    redis.pause();
    const started = performance.now();
    await expect(locks.acquire("a", { ttl: "30s" })).rejects.toMatchObject(unanswered);
    expect(performance.now() - started).toBeLessThan(8_000);
    redis.resume();
    await eventually(() => noKeys(port));
    await (await locks.acquire("a", { wait: "5s" })).release();
  });

  it("a frozen server: a request that does not wait is given up, and refused by the server later", async () => {
    const { server: redis, port } = await server();
    const locks = locksAt(port, library);
    await (await locks.acquire("warm")).release();
    redis.pause();
    await expect(locks.tryAcquire("a")).rejects.toMatchObject(unanswered);
    redis.resume();
    await eventually(() => noKeys(port));
  });

  it("no server: unavailable, and back as soon as it is; what was given up never arrives", async () => {
    const { server: redis, port } = await server();
    const locks = locksAt(port, library);
    await (await locks.acquire("warm")).release();
    await redis.kill();
    await expect(locks.acquire("a")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE", retryable: true });
    await expect(locks.tryAcquire("b")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await redis.start();
    await eventually(async () => (await locks.tryAcquire("c").catch(() => null)) !== null);
    expect((await locks.query()).held.map(({ name }) => name)).toEqual(["c"]);
  });

  it("a server that was away for long: who asks when it is back is served within the deadline", async () => {
    const { server: redis, port } = await server();
    const locks = locksAt(port, library, { deadlineMs: 400 });
    await (await locks.acquire("warm")).release();
    await redis.kill();
    await sleep(4_000);
    await redis.start();
    await (await locks.acquire("a")).release();
  });

  it("a process that stood still past the deadline: an answer that came meanwhile counts", async () => {
    const { port } = await server();
    const url = `redis://127.0.0.1:${port}?client=${library}`;
    const backend = redisBackend({ url, deadlineMs: 1_000, confirmWithinMs: 200 });
    ends.push(() => backend.close());
    await eventually(() =>
      backend.list("job").then(
        () => true,
        () => false,
      ),
    );
    for (let turn = 0; turn < 3; turn++)
      expect(await blockedDuring(1_500, () => backend.list("job"), port)).toEqual([]);
  });

  it("a short interruption: a request waits for the connection to come back", async () => {
    const { server: redis, port } = await server();
    const locks = locksAt(port, library, { deadlineMs: 8_000 });
    await (await locks.acquire("warm")).release();
    await redis.kill();
    const lock = locks.acquire("a");
    await redis.start();
    expect((await lock).held).toBe(true);
  });

  it("a server restarted without data: held locks are lost, and say so", async () => {
    const { server: redis, port } = await server();
    const locks = locksAt(port, library, { deadlineMs: 2_000 });
    const lock = await locks.acquire("a", { ttl: "3s" });
    await redis.kill();
    await redis.start();
    await eventually(() => lock.signal.aborted);
    expect(String(lock.signal.reason)).toMatch(/store does not have|gone|renew/i);
    expect(await lock.release()).toBe("gone");
  });

  it("connections killed by an administrator: waiters and holders go on", async () => {
    const { port } = await server();
    const [a, b] = [
      locksAt(port, library, { deadlineMs: 3_000 }),
      locksAt(port, library, { deadlineMs: 3_000 }),
    ];
    const lock = await a.acquire("a", { ttl: "30s" });
    const waiting = track(b.acquire("a", { ttl: "30s" }));
    await eventually(async () => (await a.query()).pending.length === 1);
    await ask(port, "client", "kill", "type", "pubsub");
    await ask(port, "client", "kill", "type", "normal");
    await eventually(async () => (await a.query().catch(() => null))?.pending.length === 1);
    expect(lock.held).toBe(true);
    expect(await lock.release()).toBe("released");
    await eventually(() => waiting.value !== undefined, 5_000);
    expect(waiting.value?.held).toBe(true);
  });

  it("scripts flushed again and again: nobody notices, and call order is kept", async () => {
    const { port } = await server();
    const locks = locksAt(port, library, { deadlineMs: 5_000 });
    const order: number[] = [];
    const flusher = new Redis(port);
    ends.push(async () => flusher.disconnect());
    const over = new AbortController();
    const flushing = (async () => {
      while (!over.signal.aborted) await flusher.script("FLUSH");
    })();
    const requests = Array.from({ length: 200 }, async (_, turn) => {
      if (turn % 7 === 0) await sleep(turn / 7);
      await locks.request(turn % 7 === 0 ? "other" : "a", () => turn % 7 === 0 || order.push(turn));
    });
    await Promise.all(requests);
    over.abort();
    await flushing;
    expect(order).toEqual(order.toSorted((x, y) => x - y));
    expect(order.length).toBe(171);
    expect(await noKeys(port)).toBe(true);
  });

  it("a server that has become a replica: unavailable, with what to do", async () => {
    const { port } = await server();
    const locks = locksAt(port, library);
    const lock = await locks.acquire("held");
    await ask(port, "replicaof", "127.0.0.1", "1");
    await expect(locks.acquire("a")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("replica"),
    });
    await ask(port, "replicaof", "no", "one");
    await eventually(async () => (await locks.tryAcquire("b").catch(() => null)) !== null);
    expect(await lock.release()).toBe("released");
  });

  it("a replica without its primary that serves nothing: unavailable", async () => {
    const { port } = await server("--replica-serve-stale-data", "no");
    const locks = locksAt(port, library);
    await (await locks.acquire("warm")).release();
    await ask(port, "replicaof", "127.0.0.1", "1");
    await expect(locks.acquire("a")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringMatching(/MASTERDOWN|READONLY/),
    });
  });

  it("a server that loads its data: unavailable until it is done", async () => {
    const { server: redis, port } = await server(
      "--key-load-delay",
      "20000",
      "--loading-process-events-interval-bytes",
      "1024",
    );
    await ask(port, "debug", "populate", "100", "filler", "200").catch(() => "");
    await ask(
      port,
      "eval",
      "for i = 1, 100 do redis.call('SET', 'filler' .. i, string.rep('x', 200)) end",
      "0",
    );
    await ask(port, "save");
    await redis.stop();
    await redis.start();
    const locks = locksAt(port, library, { deadlineMs: 300 });
    await expect(locks.acquire("a")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await eventually(async () => (await locks.tryAcquire("a").catch(() => null)) !== null);
  });

  it("a server that is busy with a script: unavailable, and fine once that is killed", async () => {
    const { port } = await server("--busy-reply-threshold", "50");
    const locks = locksAt(port, library, { deadlineMs: 3_000 });
    await (await locks.acquire("warm")).release();
    const looping = ask(port, "eval", "while true do end", "0").catch((error: unknown) => String(error));
    await eventually(async () => (await ask(port, "ping")).startsWith("BUSY"));
    await expect(locks.acquire("a")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("BUSY"),
    });
    await ask(port, "script", "kill");
    await looping;
    await (await locks.acquire("a")).release();
  });

  it("a wrong password, and none: unavailable, with what to do", async () => {
    const { port } = await server("--requirepass", "right");
    for (const login of [":wrong@", ""]) {
      const locks = locksAt(port, library, { login });
      await expect(locks.acquire("a")).rejects.toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringMatching(/password/),
      });
    }
    await (await locksAt(port, library, { login: ":right@" }).acquire("a")).release();
  });

  it("a user without the rights: unavailable, and the line in the docs has all that it takes", async () => {
    const { port } = await server();
    await ask(
      port,
      "acl",
      "setuser",
      "poor",
      "on",
      ">pw",
      "~*",
      "&*",
      "+evalsha",
      "+eval",
      "+hello",
      "+client|setname",

      "+info",
    );
    await expect(locksAt(port, library, { login: "poor:pw@" }).acquire("a")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("ACL"),
    });
    const line = /^ACL SETUSER .*$/m.exec(
      readFileSync(new URL("../../docs/backends/redis.md", import.meta.url), "utf8"),
    );
    await ask(port, ...(line?.[0].split(" ") ?? []));
    // The page has it as a line of its own, since Redis 7.0 does not know it, and takes no line that has it.
    await ask(port, "acl", "setuser", "locks", "+client|setinfo");
    const [a, b] = [1, 2].map(() => locksAt(port, library, { login: "locks:password@", deadlineMs: 3_000 }));
    const lock = await a?.acquire("a", { ttl: "3s" });
    const waiting = [b?.acquire("a"), b?.acquire("a", { mode: "shared" }), b?.semaphore("s", 1).acquire()];
    await eventually(async () => (await a?.query())?.pending.length === 2);
    // Until it has been renewed.
    let leftMs = Number.POSITIVE_INFINITY;
    await eventually(async () => {
      const before = leftMs;
      leftMs = (await a?.query())?.held.find(({ name }) => name === "a")?.expiresInMs ?? 0;
      return leftMs > before;
    });
    expect(lock?.held).toBe(true);
    await lock?.release();
    for (const each of waiting) await (await each)?.release();
    await (await b?.acquire("a", { steal: true }))?.release();
    expect(await noKeys(port)).toBe(true);
    const left = await ask(port, "acl", "log");
    expect(left.includes("username\nlocks"), left).toBe(false);
  });

  it("no memory left: a new lock is refused, a release still works", async () => {
    const { port } = await server();
    const locks = locksAt(port, library);
    const lock = await locks.acquire("a");
    await ask(port, "config", "set", "maxmemory", "1");
    await expect(locks.acquire("b")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("maxmemory"),
    });
    expect(await lock.release()).toBe("released");
  });

  it("no memory left: whoever has a lock, or waits for one, keeps its place", async () => {
    const { port } = await server();
    const backend = redisBackend({ url: `redis://127.0.0.1:${port}?client=${library}`, deadlineMs: 5_000 });
    ends.push(() => backend.close());
    const owner = { client: "c", host: "h", pid: 1 };
    const places = [
      ["alone", "a", "write", undefined],
      ["wanted", "b", "write", undefined],
      ["wanted", "c", "write", undefined],
      ["read", "d", "read", undefined],
      ["read", "e", "read", undefined],
      ["permits", "f", "write", 1],
      ["permits", "g", "write", 1],
    ] as const;
    const renewals = await Promise.all(
      places.map(async ([queue, id, mode, permits]) => {
        const entry = { id, owner, mode, weight: 1, permits, ttlMs: 60_000 };
        return { queue, id, seq: (await backend.append(queue, entry))?.self.seq ?? 0n, ttlMs: 90_000 };
      }),
    );
    await ask(port, "config", "set", "maxmemory", "1");
    // One by one: in a script nothing is refused after its first write.
    for (const renewal of renewals) {
      const [answer] = await backend.renew([renewal]);
      expect(answer, `${renewal.queue} ${renewal.id}`).toEqual({ outcome: "renewed", expiresInMs: 90_000 });
    }
    for (const { queue, id } of renewals) expect(await backend.remove(queue, id)).toBe(true);
    expect(await noKeys(port)).toBe(true);
  });

  it("one lock whose key is somebody else's fails alone", async () => {
    const { port } = await server();
    const locks = locksAt(port, library);
    await ask(port, "rpush", "holdfast:{foreign}", "x");
    const [bad, good] = await Promise.allSettled([locks.acquire("foreign"), locks.acquire("own")]);
    const message = expect.stringMatching(/^redis: lock "foreign": .* the key holdfast:\{foreign\}/);
    const reason = { code: "LOCK_UNAVAILABLE", lock: "foreign", backend: "redis", message };
    expect(bad).toMatchObject({ status: "rejected", reason });
    await expect(locks.semaphore("foreign", 2).tryAcquire()).resolves.not.toBeNull();
    await ask(port, "rpush", "holdfast:{-semaphore/other}", "x");
    await expect(locks.semaphore("other", 2).tryAcquire()).rejects.toMatchObject({ lock: "other" });
    expect(good.status).toBe("fulfilled");
    expect(await ask(port, "lrange", "holdfast:{foreign}", "0", "-1")).toBe("x");
  });
});

describe.each(libraries)("a network that fails, with %s", (library) => {
  it("lost wake-ups: waiters look for themselves when they are listened for again", async () => {
    const { port } = await server();
    const proxy = await proxyTo(port);
    const [a, b] = [locksAt(port, library), locksAt(proxy.port, library, { deadlineMs: 1_000 })];
    const lock = await a.acquire("a", { ttl: "30s" });
    const waiting = track(b.acquire("a", { ttl: "30s" }));
    await eventually(async () => (await a.query()).pending.length === 1);
    proxy.blackhole();
    await lock.release();
    await sleep(100);
    expect(waiting.value).toBeUndefined();
    proxy.heal();
    await eventually(() => waiting.value !== undefined, 5_000);
    expect(waiting.value?.held).toBe(true);
  });

  it("a lost answer: the entry is found again, and there is one", async () => {
    const { port } = await server();
    const proxy = await proxyTo(port);
    const locks = locksAt(proxy.port, library);
    await (await locks.acquire("warm")).release();
    proxy.down.swallow = true;
    const asked = locks.acquire("a");
    await eventually(async () => (await ask(port, "exists", "holdfast:{a}")) === "1");
    proxy.heal();
    const lock = await asked;
    expect(lock.held).toBe(true);
    expect((await locks.query()).held.length).toBe(1);
    expect(await lock.release()).toBe("released");
    await eventually(() => noKeys(port));
  });

  it("a dead connection that nobody ended: given up after the deadline, and replaced", async () => {
    const { port } = await server();
    const proxy = await proxyTo(port);
    const locks = locksAt(proxy.port, library);
    const lock = await locks.acquire("a", { ttl: "30s" });
    proxy.blackhole();
    await expect(locks.tryAcquire("b")).rejects.toMatchObject(unanswered);
    // The old connections stay dead: only new ones pass.
    proxy.blackhole(false);
    await eventually(async () => (await locks.tryAcquire("c").catch(() => null)) !== null);
    expect(lock.held).toBe(true);
  });

  it("a cut in the middle of a call: unknown, then found again", async () => {
    const { port } = await server();
    const proxy = await proxyTo(port);
    const locks = locksAt(proxy.port, library, { deadlineMs: 2_000 });
    await (await locks.acquire("warm")).release();
    proxy.down.delayMs = 300;
    const asked = locks.acquire("a");
    await eventually(async () => (await ask(port, "exists", "holdfast:{a}")) === "1");
    proxy.heal();
    expect((await asked).held).toBe(true);
  });
});

describe.each(Object.entries(handedIn))("a network that fails, with %s handed in", (_, open) => {
  it("a cut in the middle of a call: unknown at once, not when its deadline has passed", async () => {
    const { port } = await server();
    const proxy = await proxyTo(port);
    const { backend, close } = open(`redis://127.0.0.1:${proxy.port}`, { deadlineMs: 15_000 });
    ends.push(close, () => backend.close());
    await backend.list("warm");
    proxy.down.swallow = true;
    const owner = { client: "c", host: "h", pid: 1 };
    const asked = backend.append("a", { id: "one", owner, mode: "write", weight: 1, ttlMs: 60_000 });
    await eventually(async () => (await ask(port, "exists", "holdfast:{a}")) === "1");
    const cutAt = performance.now();
    proxy.heal();
    await expect(asked).rejects.toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
    expect(performance.now() - cutAt).toBeLessThan(5_000);
    expect(await backend.list("a")).toMatchObject([{ id: "one" }]);
  });
});

describe.each(libraries)("a replica that is promoted before it has heard, with %s", (library) => {
  it("grants a lock twice, unless a replica had to confirm it", async () => {
    const primary = await server();
    const proxy = await proxyTo(primary.port);
    const replica = await server("--repl-diskless-sync-delay", "0", "--replicaof", `127.0.0.1 ${proxy.port}`);
    await eventually(async () => (await ask(primary.port, "info", "replication")).includes("state=online"));
    const open = (port: number, replicas: number): LockManager => {
      const url = `redis://127.0.0.1:${port}?client=${library}`;
      const locks = new LockManager(
        redisBackend({ url, replicas, deadlineMs: 10_000, confirmWithinMs: 3_000 }),
      );
      ends.push(() => locks.close());
      return locks;
    };
    const [plain, careful] = [open(primary.port, 0), open(primary.port, 1)];
    const confirmed = await careful.acquire("confirmed", { ttl: "60s" });
    proxy.blackhole();
    const lock = await plain.acquire("a", { ttl: "60s" });
    await expect(careful.acquire("b", { ttl: "60s" })).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("0 of 1 replicas confirmed"),
    });
    await eventually(async () => (await ask(primary.port, "exists", "holdfast:{b}")) === "0");
    await primary.server.kill();
    await ask(replica.port, "replicaof", "no", "one");
    const after = open(replica.port, 0);
    // The counterexample of docs/backends/redis.md.
    const second = await after.acquire("a", { wait: "1s" });
    expect([lock.held, second.held]).toEqual([true, true]);
    expect(second.token).toBeGreaterThan(lock.token);
    expect(await after.tryAcquire("confirmed")).toBeNull();
    expect(confirmed.held).toBe(true);
  });
});

describe.each(libraries)("a lock that must be on disk, with %s", (library) => {
  it("is granted by a server that confirms it, and refused by one that cannot", async () => {
    const given = process.env["HOLDFAST_TEST_REDIS_URL"];
    const started = given ? null : await server("--appendonly", "yes");
    const url = given ?? `redis://127.0.0.1:${started?.port}`;
    const settings = { url: `${url}?client=${library}`, deadlineMs: 3_000, confirmWithinMs: 500 };
    const [plain, careful] = [
      new LockManager(redisBackend(settings)),
      new LockManager(redisBackend({ ...settings, aof: 1 })),
    ];
    ends.push(
      () => plain.close(),
      () => careful.close(),
    );
    const looker = new Redis(url);
    ends.push(async () => looker.disconnect());
    const [, major = "", minor = ""] = /redis_version:(\d+)\.(\d+)/.exec(await looker.info("server")) ?? [];
    if (Number(major) > 7 || (major === "7" && Number(minor) >= 2)) {
      const lock = await careful.acquire("disk");
      expect(await plain.tryAcquire("disk")).toBeNull();
      await looker.config("SET", "appendonly", "no");
      await expect(careful.acquire("other")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
      await looker.config("SET", "appendonly", "yes");
      expect(await lock.release()).toBe("released");
    } else {
      await expect(careful.acquire("disk")).rejects.toMatchObject({
        code: "LOCK_UNAVAILABLE",
        message: expect.stringMatching(/did not confirm it: .*unknown command.*WAITAOF needs Redis 7\.2/i),
      });
      await expect(connect(redisBackend({ ...settings, aof: 1, health: "refuse" }))).rejects.toMatchObject({
        code: "LOCK_UNSUPPORTED",
        message: expect.stringMatching(/aof: version 7\.\d+\.\d+\. leave the option aof out/),
      });
      await eventually(async () => (await looker.exists("holdfast:{disk}")) === 0);
    }
  });
});

describe("an eviction by the server", () => {
  it("of the order alone costs no lock", async () => {
    const { port } = await server();
    const locks = locksAt(port, "ioredis");
    const lock = await locks.acquire("a");
    const waiting = [track(locks.acquire("a")), track(locks.acquire("a", { mode: "shared" }))];
    await eventually(async () => (await locks.query()).pending.length === 2);
    await ask(port, "del", "holdfast:{a}:o");
    expect(await locks.tryAcquire("a")).toBeNull();
    await lock.release();
    await eventually(() => waiting[0]?.value !== undefined);
    expect(waiting[1]?.value).toBeUndefined();
    await waiting[0]?.value?.release();
    await eventually(() => waiting[1]?.value !== undefined);
  });

  it("of a whole queue is a loss that holders hear of", async () => {
    const { port } = await server();
    const locks = locksAt(port, "ioredis");
    const lock = await locks.acquire("a", { ttl: "1s" });
    await ask(port, "flushall");
    await eventually(() => lock.signal.aborted);
    expect(lock.held).toBe(false);
  });
});

describe("connect", () => {
  it("rejects when there is no server", async () => {
    await expect(connect("redis://127.0.0.1:1?deadlineMs=1100")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });

  it("refuses a server that is not fit if it is told so, and says what to do", async () => {
    const { port } = await server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
    await expect(connect(`redis://127.0.0.1:${port}?health=refuse`)).rejects.toMatchObject({
      code: "LOCK_UNSUPPORTED",
      message: expect.stringMatching(/eviction: allkeys-lru\..*noeviction/),
    });
    const locks = await connect(`redis://127.0.0.1:${port}?health=ignore`);
    await locks.close();
  });

  it.each(Object.entries(handedIn))(
    "looks at the server of a client that is handed in, too: %s",
    async (_, open) => {
      const { port } = await server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
      const opened = (settings: RedisSettings): RedisBackend => {
        const { backend, close } = open(`redis://127.0.0.1:${port}`, settings);
        ends.push(close);
        return backend;
      };
      const warnings: string[] = [];
      const hear = ({ message }: Error): number => warnings.push(message);
      process.on("warning", hear);
      const locks = await connect(opened({}));
      await eventually(() => warnings.some((text) => text.startsWith("redis: eviction: allkeys-lru.")));
      process.off("warning", hear);
      await locks.close();
      await expect(connect(opened({ health: "refuse" }))).rejects.toMatchObject({
        code: "LOCK_UNSUPPORTED",
        message: expect.stringMatching(/eviction: allkeys-lru\..*noeviction/),
      });
      await ask(port, "config", "set", "maxmemory-policy", "noeviction");
      const safe = await connect(opened({}), { require: { survives: ["eviction"] } });
      await safe.close();
    },
  );

  it("refuses a setting of health that there is not", () => {
    const options = JSON.parse('{ "url": "redis://127.0.0.1", "health": "maybe" }');
    expect(() => redisBackend(options)).toThrow(/health is warn, refuse or ignore/);
    expect(() => redisBackend({ url: "redis://127.0.0.1?health=maybe" })).toThrow(/health is warn/);
  });

  it("meets a demand to survive eviction where the server does not evict, and only there", async () => {
    const require = { survives: ["eviction"] } as const;
    const { port } = await server();
    const locks = await connect(`redis://127.0.0.1:${port}`, { require });
    expect(locks.traits.exclusivityBrokenBy).not.toContain("eviction");
    await locks.close();
    await ask(port, "config", "set", "maxmemory-policy", "volatile-ttl");
    await expect(connect(`redis://127.0.0.1:${port}`, { require })).rejects.toMatchObject({
      code: "LOCK_UNSUPPORTED",
      message: expect.stringContaining("after: eviction"),
    });
    await expect(
      connect(`redis://127.0.0.1:${port}`, { require: { survives: ["fail-over"] } }),
    ).rejects.toMatchObject({ code: "LOCK_UNSUPPORTED" });
  });

  it.each(libraries)("says when what it is told is on disk, where it may ask, with %s", async (library) => {
    const { port } = await server("--appendonly", "yes");
    const found = async (login: string): Promise<string> => {
      const backend = redisBackend({ url: `redis://${login}127.0.0.1:${port}?client=${library}` });
      ends.push(() => backend.close());
      const finding = (await backend.examine()).find(({ about }) => about === "persistence");
      return `${finding?.level}: ${finding?.seen}; ${finding?.todo ?? "nothing to do"}`;
    };
    expect(await found("")).toMatch(/^ok: append-only file, fsync everysec; set appendfsync always/);
    await ask(port, "config", "set", "appendfsync", "always");
    expect(await found("")).toBe("ok: append-only file, fsync always; nothing to do");
    await ask(port, "acl", "setuser", "poor", "on", ">pw", "~*", "&*", "+@all", "-config");
    expect(await found("poor:pw@")).toBe("ok: append-only file; nothing to do");
  });

  it("refuses a handed-in client that queues or sends again", () => {
    for (const options of [{}, { enableOfflineQueue: false }, { autoResendUnfulfilledCommands: false }]) {
      const client = new Redis(1, "127.0.0.1", { ...options, lazyConnect: true });
      expect(() => redisBackend({ client })).toThrow(/make it with \{/);
    }
    const prefixed = new Redis(1, "127.0.0.1", { ...safeIoredis, keyPrefix: "x:", lazyConnect: true });
    expect(() => redisBackend({ client: prefixed })).toThrow(/keyPrefix/);
  });

  it("says of a handed-in client that listens on channels that it takes nothing else", async () => {
    const { port } = await server();
    const client = new Redis5(port, safeIoredis);
    ends.push(async () => client.disconnect());
    await once(client, "ready");
    await client.subscribe("news");
    const locks = new LockManager(redisBackend({ client }));
    ends.push(() => locks.close());
    await expect(locks.acquire("a")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: expect.stringMatching(/listens on channels .* client\.duplicate\(\)/),
    });
  });
});
