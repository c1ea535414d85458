/** Holders on Redlock whose lock is taken from them: told at once, not only with their next renewal, which is far away here. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { redlockBackend } from "../../src/backends/redlock/index.ts";
import { channelOf } from "../../src/backends/redlock/keys.ts";
import { LockManager } from "../../src/core/manager.ts";
import { startServers, type Servers } from "../helpers/redlock.ts";

/** A third of this is far more than anybody waits here. */
const ttl = "60s";

let fleet: Servers;
const managers: LockManager[] = [];

beforeAll(async () => {
  fleet = await startServers(3);
});

afterEach(async () => {
  await Promise.all(managers.splice(0).map((locks) => locks.close()));
});

afterAll(() => fleet.close());

function open(): LockManager {
  const backend = redlockBackend({ url: fleet.url, quarantineMs: 0, deadlineMs: 2_000 });
  const locks = new LockManager(backend, { ttl });
  managers.push(locks);
  return locks;
}

/** How many listen for this lock, on all nodes together. */
async function listeners(name: string): Promise<number> {
  const counts = await Promise.all(fleet.lookers.map((looker) => looker.pubsub("NUMSUB", channelOf(name))));
  return counts.reduce((sum: number, [, count]) => sum + Number(count), 0);
}

async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 5_000;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not within five seconds: ${what}`);
    await sleep(10);
  }
}

describe("a holder", () => {
  it("that listens is told when its lock is stolen", async () => {
    const [holder, thief] = [open(), open()];
    const outcome = holder.request("stolen", (lock) => {
      if (lock === null) throw new Error("it was free");
      return new Promise((_resolve, reject) => {
        lock.signal.addEventListener("abort", () => reject(new Error("the signal")));
      });
    });
    outcome.catch(() => {});
    await eventually("the holder listens", async () => (await listeners("stolen")) === 1);
    const stolen = await thief.acquire("stolen", { steal: true });
    await expect(outcome).rejects.toMatchObject({ name: "AbortError" });
    await stolen.release();
  });

  it("whose lock was taken before it listened is told when it does", async () => {
    const [holder, thief] = [open(), open()];
    const lock = await holder.acquire("early");
    const stolen = await thief.acquire("early", { steal: true });
    expect(stolen.token).toBeGreaterThan(lock.token);
    await eventually("the holder is told", () => lock.signal.aborted);
    expect(lock.held).toBe(false);
  });

  it("goes on if it is somebody else who was told of", async () => {
    const [holder, other] = [open(), open()];
    const lock = await holder.acquire("kept");
    await eventually("the holder listens", async () => (await listeners("kept")) === 1);
    await fleet.lookers[0]?.publish(channelOf("kept"), "another");
    await fleet.lookers[1]?.publish(channelOf("kept"), "another");
    await fleet.lookers[2]?.publish(channelOf("kept"), "another");
    expect(await other.tryAcquire("kept")).toBeNull();
    expect(lock.held).toBe(true);
    expect(await lock.release()).toBe("released");
  });

  it("that is quick does not listen, and one that has left does not go on", async () => {
    const holder = open();
    const lock = await holder.acquire("long");
    for (let turn = 0; turn < 20; turn++) await (await holder.acquire("quick")).release();
    await eventually("the holder listens", async () => (await listeners("long")) === 1);
    expect(await listeners("quick")).toBe(0);
    await lock.release();
    await eventually("nobody listens", async () => (await listeners("long")) === 0);
  });
});
