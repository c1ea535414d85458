/** The same lock as Go's: a real `etcdctl lock`, which is Go's concurrency.Mutex, and this backend exclude each other in order. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { etcdBackend } from "../../src/backends/etcd/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { startOne } from "../helpers/etcd.ts";
import { keys } from "../helpers/etcd-store.ts";

let node: EtcdNode;
let locks: LockManager;
let holders: ChildProcess[] = [];

beforeAll(async () => {
  node = await startOne();
  locks = await connect(etcdBackend({ endpoints: [node.endpoint], prefix: "" }));
});

afterEach(() => {
  for (const holder of holders) holder.kill("SIGKILL");
  holders = [];
});

afterAll(async () => {
  await locks.close();
  await node.remove();
});

/** A process that takes a lock as Go does, and holds it until it is ended. */
class GoHolder {
  readonly process: ChildProcess;
  /** The key that it holds; null while it waits. */
  key: string | null = null;
  readonly ended: Promise<void>;

  constructor(name: string, ttlSeconds: number) {
    this.process = spawn("etcdctl", [`--endpoints=${node.endpoint}`, "lock", `--ttl=${ttlSeconds}`, name], {
      env: { ...process.env, ETCDCTL_API: "3" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    holders.push(this.process);
    this.process.stdout?.on("data", (chunk: Buffer) => {
      this.key = ((this.key ?? "") + chunk.toString()).trim();
    });
    this.ended = new Promise((resolve) => {
      this.process.once("exit", () => resolve());
    });
  }

  get holds(): boolean {
    return this.key !== null;
  }

  /** It gives the lock back and ends. */
  async letGo(): Promise<void> {
    this.process.kill("SIGTERM");
    await this.ended;
  }
}

const waitMs = { timeout: 8_000 };
const inQueue = async (name: string): Promise<number> => (await keys(node.endpoint, `${name}/`)).length;

describe("etcdctl lock", () => {
  it("waits for a lock that is held here, and gets it when it is released", async () => {
    const name = randomUUID();
    const lock = await locks.acquire(name);
    const go = new GoHolder(name, 10);
    await expect.poll(() => inQueue(name), waitMs).toBe(2);
    expect(go.holds).toBe(false);
    await lock.release();
    await expect.poll(() => go.holds, waitMs).toBe(true);
    expect(go.key).toMatch(new RegExp(`^${name}/[0-9a-f]+$`));
    expect(await locks.tryAcquire(name)).toBeNull();
    await go.letGo();
    await expect.poll(() => inQueue(name), waitMs).toBe(0);
  });

  it("is waited for here, shown in listings, and its release is heard of", async () => {
    const name = randomUUID();
    const go = new GoHolder(name, 10);
    await expect.poll(() => go.holds, waitMs).toBe(true);
    const waiting = locks.acquire(name, { wait: "10s" });
    await expect.poll(() => inQueue(name), waitMs).toBe(2);
    const { held, pending } = await locks.query({ prefix: name });
    expect(held).toMatchObject([{ name, mode: "exclusive", owner: { label: "another program" } }]);
    expect(held[0]?.expiresInMs).toBeLessThanOrEqual(10_000);
    expect(pending).toHaveLength(1);
    const releasedAt = performance.now();
    await go.letGo();
    const lock = await waiting;
    expect(performance.now() - releasedAt).toBeLessThan(2_000);
    expect(lock.token).toBeGreaterThan(held[0]?.token ?? 0n);
    await lock.release();
  });

  it("that is killed while it holds loses the lock with its lease", async () => {
    const name = randomUUID();
    const go = new GoHolder(name, 2);
    await expect.poll(() => go.holds, waitMs).toBe(true);
    const waiting = locks.acquire(name, { wait: "15s" });
    await expect.poll(() => inQueue(name), waitMs).toBe(2);
    go.process.kill("SIGKILL");
    await go.ended;
    const lock = await waiting;
    expect(lock.held).toBe(true);
    await lock.release();
    expect(await inQueue(name)).toBe(0);
  });

  it("waits for a holder here that dies without a word, and gets the lock with the end of its lease", async () => {
    const name = randomUUID();
    const dying = etcdBackend({ endpoints: [node.endpoint], prefix: "" });
    const owner = { client: "c", host: "h", pid: 1 };
    await dying.append(name, { id: "dying", owner, mode: "write", weight: 1, ttlMs: 2_000 });
    const go = new GoHolder(name, 10);
    await expect.poll(() => inQueue(name), waitMs).toBe(2);
    // Closed with an entry in the store, as a killed process would leave it: the lease is not given back.
    await dying.close();
    expect(go.holds).toBe(false);
    await expect.poll(() => go.holds, waitMs).toBe(true);
    await go.letGo();
  });

  it("takes its turn in a queue of both kinds, first come first served", async () => {
    const name = randomUUID();
    const order: string[] = [];
    const first = await locks.acquire(name);
    const go = new GoHolder(name, 10);
    await expect.poll(() => inQueue(name), waitMs).toBe(2);
    const third = locks.acquire(name).then(async (lock) => {
      order.push("third");
      await lock.release();
    });
    await expect.poll(() => inQueue(name), waitMs).toBe(3);
    const last = new GoHolder(name, 10);
    await expect.poll(() => inQueue(name), waitMs).toBe(4);
    await first.release();
    await expect.poll(() => go.holds, waitMs).toBe(true);
    expect([order.length, last.holds]).toEqual([0, false]);
    await go.letGo();
    await third;
    await expect.poll(() => last.holds, waitMs).toBe(true);
    await last.letGo();
  });

  it("waits for readers, and readers wait for it", async () => {
    const name = randomUUID();
    const readers = [
      await locks.acquire(name, { mode: "shared" }),
      await locks.acquire(name, { mode: "shared" }),
    ];
    const go = new GoHolder(name, 10);
    await expect.poll(() => inQueue(name), waitMs).toBe(3);
    let late = false;
    const reader = locks.acquire(name, { mode: "shared" }).then((lock) => {
      late = true;
      return lock.release();
    });
    await readers[0]?.release();
    await expect.poll(() => inQueue(name), waitMs).toBe(3);
    expect([go.holds, late]).toEqual([false, false]);
    await readers[1]?.release();
    await expect.poll(() => go.holds, waitMs).toBe(true);
    expect(late).toBe(false);
    await go.letGo();
    await reader;
  });

  it("can be evicted from here", async () => {
    const name = randomUUID();
    const go = new GoHolder(name, 10);
    await expect.poll(() => go.holds, waitMs).toBe(true);
    await locks.request(name, { steal: true }, (lock) => expect(lock.held).toBe(true));
    expect(await inQueue(name)).toBe(0);
  });
});

describe("names", () => {
  it("with slashes are Go's when they are taken as they are", async () => {
    const plain = await connect(etcdBackend({ endpoints: [node.endpoint], prefix: "svc/", names: "plain" }));
    const lock = await plain.acquire("billing/nightly");
    const go = new GoHolder("svc/billing/nightly", 10);
    await expect.poll(() => inQueue("svc/billing/nightly"), waitMs).toBe(2);
    expect(go.holds).toBe(false);
    await lock.release();
    await expect.poll(() => go.holds, waitMs).toBe(true);
    expect((await plain.query()).held.map(({ name }) => name)).toEqual(["billing/nightly"]);
    await go.letGo();
    await plain.close();
  });
});

describe("two requests of one client", () => {
  it("are two entries, unlike two of one session in Go", async () => {
    const name = randomUUID();
    const lock = await locks.acquire(name);
    expect(await locks.tryAcquire(name)).toBeNull();
    await lock.release();
  });
});
