/** Processes that are killed or paused while they hold a lock in etcd, and one that ends as it should. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { connect } from "../../src/connect.ts";
import { type Build, build } from "../helpers/child.ts";
import { startOne } from "../helpers/etcd.ts";
import { keys, leases } from "../helpers/etcd-store.ts";
import { startWorker, type Worker } from "../helpers/worker.ts";

const ttlMs = 2_000;

let built: Build;
let node: EtcdNode;
let url: string;
let workers: Worker[] = [];

beforeAll(async () => {
  [built, node] = await Promise.all([build(), startOne()]);
  url = `etcd://127.0.0.1:${node.port}/p/`;
}, 60_000);

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  workers = [];
  await expect.poll(() => keys(node.endpoint, "p/"), { timeout: 10_000 }).toEqual([]);
  await expect.poll(() => leases(node.endpoint), { timeout: 10_000 }).toEqual([]);
});

afterAll(async () => {
  await node.remove();
  await built.remove();
});

/** A process that holds a lock, and says whether it still does when it is asked. */
async function holder(name: string): Promise<{ worker: Worker; token: bigint }> {
  const worker = startWorker(`
    import { connect } from "${built.address("index")}";
    const locks = await connect("${url}");
    const lock = await locks.acquire("${name}", { ttl: ${ttlMs} });
    console.log("token " + lock.token);
    process.stdin.on("data", async (line) => {
      console.log("held " + lock.held);
      if (String(line).startsWith("bye")) {
        await lock.release();
        await locks.close();
        process.stdin.destroy();
        console.log("done");
      }
    });`);
  workers.push(worker);
  return { worker, token: BigInt(await worker.said("token")) };
}

it("the lock of a process that was killed is granted to the next, with a higher token", async () => {
  const { worker, token } = await holder("killed");
  await using locks = await connect(url);
  const waiting = locks.acquire("killed", { wait: 15_000 });
  await expect.poll(() => keys(node.endpoint, "p/killed/")).toHaveLength(2);
  worker.signal("SIGKILL");
  const lock = await waiting;
  expect(lock.token).toBeGreaterThan(token);
  await lock.release();
});

it("a process that was paused past its ttl knows when it goes on that it does not hold any more", async () => {
  const { worker, token } = await holder("paused");
  await using locks = await connect(url);
  const waiting = locks.acquire("paused", { wait: 15_000 });
  worker.signal("SIGSTOP");
  const lock = await waiting;
  expect(lock.token).toBeGreaterThan(token);
  worker.signal("SIGCONT");
  worker.tell("well?");
  expect(await worker.said("held")).toBe("false");
  expect(lock.held).toBe(true);
  await lock.release();
});

it("a process that holds for longer than its ttl goes on holding, and ends by itself once it has closed", async () => {
  const { worker } = await holder("kept");
  await using locks = await connect(url);
  await expect(locks.acquire("kept", { wait: 2 * ttlMs })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  worker.tell("bye");
  expect(await worker.said("held")).toBe("true");
  await worker.said("done");
  const isAlive = (): boolean => {
    try {
      return process.kill(worker.pid, 0);
    } catch {
      return false;
    }
  };
  await expect.poll(isAlive, { timeout: 5_000 }).toBe(false);
});
