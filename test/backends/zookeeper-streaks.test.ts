/** A client that has a queue of ZooKeeper to itself asks less: and is not deceived when others come, or the queue is another one. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { TcpProxy } from "../../scripts/lib/zookeeper-for-tests.mjs";
import type { ZooSession } from "../../src/backends/zookeeper/client/index.ts";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { openAcl, rawSession, started, type ZooRig } from "../helpers/zookeeper.ts";

const data = Buffer.alloc(0);
/** More than it takes to know that one is alone. */
const pairs = 20;

let rig: ZooRig;
let other: ZooSession;

beforeAll(async () => {
  // Containers stay for as long as the tests take: the sequences are counted on.
  rig = await started(1, { containerMs: 600_000 });
  other = rawSession(rig.hosts);
});
afterAll(async () => {
  await other.close();
  await rig.close();
});

async function alone(
  queue: string,
  work: (locks: LockManager) => Promise<void>,
  hosts = rig.hosts,
): Promise<void> {
  await using locks = await connect(zookeeperBackend({ hosts, root: "/s", tickMs: 100 }));
  await use(locks, queue, pairs);
  await work(locks);
}

async function use(locks: LockManager, queue: string, times: number): Promise<void> {
  for (let turn = 0; turn < times; turn++) await locks.request(queue, () => {});
}

async function makeOther(queue: string): Promise<string> {
  const path = `/s/${queue}/_c_00000000-0000-8000-8000-000000000000-lock-`;
  return (await other.create({ path, data, acl: openAcl, mode: "ephemeral-sequential" })).path;
}

/** Removes a queue that is empty, and makes another in its place that has counted as far, with somebody in it. */
async function replace(queue: string): Promise<string> {
  await other.delete(`/s/${queue}`);
  await other.create({ path: `/s/${queue}`, data, acl: openAcl, mode: "container" });
  for (let turn = 1; turn < pairs; turn++) await other.delete(await makeOther(queue));
  return makeOther(queue);
}

async function received(): Promise<number> {
  return Number(/^Received: (\d+)/m.exec((await rig.servers[0]?.ask("srvr")) ?? "")?.[1]);
}

it("a pair is a create and a delete", async () => {
  await alone("cheap", async (locks) => {
    const before = await received();
    await use(locks, "cheap", 100);
    const perPair = ((await received()) - before) / 100;
    expect(perPair).toBeGreaterThanOrEqual(2);
    // With a list it would be three; the rest are pings, and watches on entries that a busy machine made live for long.
    expect(perPair).toBeLessThan(2.5);
  });
});

it("whoever has come in between is seen, and waited for", async () => {
  await alone("shared", async (locks) => {
    const node = await makeOther("shared");
    expect(await locks.tryAcquire("shared")).toBeNull();
    const waiting = locks.request("shared", () => "granted");
    await expect.poll(async () => (await locks.query()).pending.length).toBe(1);
    await other.delete(node);
    expect(await waiting).toBe("granted");
  });
});

it("whoever has come and gone in between is no matter", async () => {
  await alone("passed", async (locks) => {
    await other.delete(await makeOther("passed"));
    const lock = await locks.tryAcquire("passed");
    expect(await lock?.release()).toBe("released");
  });
});

it("two of this client exclude each other", async () => {
  await alone("own", async (locks) => {
    const [first, second] = await Promise.all([locks.acquire("own"), locks.tryAcquire("own")]);
    expect(second).toBeNull();
    expect(await locks.tryAcquire("own")).toBeNull();
    await first.release();
  });
});

it("a queue that was removed and made again, and has counted as far, is another one", async () => {
  await alone("again", async (locks) => {
    const node = await replace("again");
    expect(node).toMatch(new RegExp(`-${String(pairs - 1).padStart(10, "0")}$`));
    expect(await locks.tryAcquire("again")).toBeNull();
    await other.delete(node);
  });
});

it("so is one that was made again while there was no connection", async () => {
  const [, port = ""] = rig.hosts.split(":");
  const proxy = await TcpProxy.start(Number(port));
  const work = async (locks: LockManager): Promise<void> => {
    proxy.refuse = true;
    proxy.resetAll();
    const node = await replace("away");
    proxy.refuse = false;
    expect(await locks.tryAcquire("away")).toBeNull();
    await other.delete(node);
  };
  await alone("away", work, `127.0.0.1:${proxy.port}`);
  await proxy.close();
});
