/** Locks of ours and of Curator, in processes of their own, in one queue: they exclude each other, in order, both ways. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type ZooKeeperOptions, zookeeperBackend } from "../../src/backends/zookeeper/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { type Build, build } from "../helpers/child.ts";
import { CuratorProgram } from "../helpers/curator.ts";
import { startHolder } from "../helpers/holder.ts";
import { rawSession, started, type ZooRig } from "../helpers/zookeeper.ts";

let rig: ZooRig;
let java: CuratorProgram;
let built: Build;
const open: LockManager[] = [];

beforeAll(async () => {
  [rig, java, built] = await Promise.all([started(1), CuratorProgram.compile(), build()]);
}, 60_000);
afterEach(async () => {
  await Promise.all(open.splice(0).map((locks) => locks.close()));
});
afterAll(async () => {
  await Promise.all([java.close(), rig.close(), built.remove()]);
});

/** Our side: the name of a lock is the path of Curator's, below /java. */
async function ours(options: Partial<ZooKeeperOptions> = {}): Promise<LockManager> {
  const backend = zookeeperBackend({
    hosts: rig.hosts,
    root: "/java",
    names: "paths",
    tickMs: 100,
    ...options,
  });
  const locks = await connect(backend);
  open.push(locks);
  return locks;
}

async function entriesAt(path: string): Promise<number> {
  const looker = rawSession(rig.hosts);
  try {
    return (await looker.getChildren(path)).children.length;
  } catch {
    return 0;
  } finally {
    await looker.close();
  }
}

async function untilEntries(path: string, count: number): Promise<void> {
  for (let tries = 0; (await entriesAt(path)) !== count; tries++) {
    if (tries > 200) throw new Error(`there are not ${count} entries at ${path}`);
    await sleep(20);
  }
}

describe("InterProcessMutex and ours", () => {
  it("exclude each other, whoever comes first", async () => {
    const locks = await ours();
    const peer = await java.start(rig.hosts, 2_000, "/java/orders/42", "mutex");
    expect(await peer.ask("acquire")).toBe("granted");
    expect(await locks.tryAcquire("orders/42")).toBeNull();
    const { held } = await locks.query();
    expect(held.map(({ name, mode }) => [name, mode])).toEqual([["orders/42", "exclusive"]]);
    expect(await peer.ask("release")).toBe("released");
    const lock = await locks.acquire("orders/42");
    expect(await peer.ask("try")).toBe("busy");
    await lock.release();
    expect(await peer.ask("try")).toBe("granted");
    expect(await peer.ask("release")).toBe("released");
  });

  it("stand in one queue, first in first out", async () => {
    const locks = await ours();
    const [one, two] = await Promise.all(
      ["a", "b"].map(() => java.start(rig.hosts, 5_000, "/java/queue", "mutex")),
    );
    if (one === undefined || two === undefined) throw new Error("no peers");
    const order: string[] = [];
    const first = await locks.acquire("queue");
    one.tell("acquire");
    await untilEntries("/java/queue", 2);
    const middle = locks.acquire("queue").then((lock) => {
      order.push("ours");
      return lock;
    });
    await untilEntries("/java/queue", 3);
    two.tell("acquire");
    await untilEntries("/java/queue", 4);
    await first.release();
    expect(await one.hear()).toBe("granted");
    order.push("one");
    await sleep(50);
    expect([order, two.hasSpoken]).toEqual([["one"], false]);
    await one.ask("release");
    const lock = await middle;
    await sleep(50);
    expect(two.hasSpoken).toBe(false);
    await lock.release();
    expect(await two.hear()).toBe("granted");
    expect(order).toEqual(["one", "ours"]);
    await two.ask("release");
  });

  it("lose no count of a number that both count up", async () => {
    const file = join(rig.servers[0]?.folder ?? "", "counter");
    await writeFile(file, "0");
    const locks = await ours();
    const peers = await Promise.all([1, 2].map(() => java.start(rig.hosts, 5_000, "/java/count", "mutex")));
    const theirs = peers.map((peer) => peer.ask(`count 60 ${file}`));
    const count = async (): Promise<void> => {
      for (let turn = 0; turn < 60; turn++) {
        await locks.request("count", async () => {
          const read = Number(await readFile(file, "utf8"));
          await sleep(1);
          await writeFile(file, String(read + 1));
        });
      }
    };
    await Promise.all([...theirs, count(), count()]);
    expect(Number(await readFile(file, "utf8"))).toBe(240);
  }, 60_000);

  it("ours gets the lock when the Java process is killed while it holds", async () => {
    const locks = await ours();
    const peer = await java.start(rig.hosts, 1_000, "/java/killed", "mutex");
    await peer.ask("acquire");
    const waiting = locks.acquire("killed");
    await untilEntries("/java/killed", 2);
    peer.kill();
    const begun = performance.now();
    const lock = await waiting;
    expect(performance.now() - begun).toBeLessThan(4_000);
    expect(await lock.release()).toBe("released");
  });

  it("Java gets the lock when our process is killed while it holds", async () => {
    const peer = await java.start(rig.hosts, 5_000, "/java/ours-killed", "mutex");
    const backend = { hosts: rig.hosts, root: "/java", names: "paths", tickMs: 100 };
    const child = startHolder(built, { backend, lock: "ours-killed", ttl: 1_000 });
    expect(await child.hear()).toMatch(/^granted /);
    expect(await peer.ask("try")).toBe("busy");
    peer.tell("acquire");
    await untilEntries("/java/ours-killed", 2);
    child.kill();
    const begun = performance.now();
    expect(await peer.hear()).toBe("granted");
    expect(performance.now() - begun).toBeLessThan(4_000);
    await peer.ask("release");
  });

  it("our shared locks keep a Java mutex out, and it keeps them out", async () => {
    const [a, b] = [await ours(), await ours()];
    const peer = await java.start(rig.hosts, 5_000, "/java/mixed", "mutex");
    const readers = [
      await a.acquire("mixed", { mode: "shared" }),
      await b.acquire("mixed", { mode: "shared" }),
    ];
    expect(await peer.ask("try")).toBe("busy");
    for (const reader of readers) await reader.release();
    expect(await peer.ask("try")).toBe("granted");
    expect(await a.tryAcquire("mixed", { mode: "shared" })).toBeNull();
    await peer.ask("release");
  });
});

describe("InterProcessReadWriteLock and ours with its layout", () => {
  it("read together, and write alone", async () => {
    const locks = await ours({ layout: "read-write" });
    const [reader, writer] = await Promise.all(
      (["read", "write"] as const).map((kind) => java.start(rig.hosts, 5_000, "/java/rw", kind)),
    );
    if (reader === undefined || writer === undefined) throw new Error("no peers");
    const shared = await locks.acquire("rw", { mode: "shared" });
    expect(await reader.ask("try")).toBe("granted");
    expect(await writer.ask("try")).toBe("busy");
    writer.tell("acquire");
    await untilEntries("/java/rw", 3);
    // Behind a writer that waits, nobody reads.
    expect(await locks.tryAcquire("rw", { mode: "shared" })).toBeNull();
    await reader.ask("release");
    await sleep(50);
    expect(writer.hasSpoken).toBe(false);
    await shared.release();
    expect(await writer.hear()).toBe("granted");
    expect(await locks.tryAcquire("rw")).toBeNull();
    await writer.ask("release");
    const exclusive = await locks.acquire("rw");
    expect(await reader.ask("try")).toBe("busy");
    expect(await writer.ask("try")).toBe("busy");
    await exclusive.release();
  });
});
