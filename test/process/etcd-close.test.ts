/** Clients of etcd that are closed with calls and watches under way: in a process of its own, since that is what could end by it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { type Build, build, run } from "../helpers/child.ts";
import { startOne } from "../helpers/etcd.ts";

let built: Build;
let node: EtcdNode;

beforeAll(async () => {
  [built, node] = await Promise.all([build(), startOne()]);
}, 60_000);

afterAll(async () => {
  await node.remove();
  await built.remove();
});

it("a client that is closed within the answer of a call, with others under way, leaves the process whole", async () => {
  const script = `
    import { EtcdClient } from "${built.address("backends/etcd/client/client")}";
    import * as methods from "${built.address("backends/etcd/client/methods")}";
    const key = Buffer.from("k");
    const turn = () => new Promise(setImmediate);
    async function closeAtOnce() {
      const client = new EtcdClient({ endpoints: ["${node.endpoint}"] });
      const call = () => client.call(methods.range, { key }).catch(() => {});
      await call();
      const told = { created: () => void call(), events() {}, ended() {} };
      client.watch({ key }, told).catch(() => {});
      const calls = [call(), call()];
      for (let turns = Math.random() * 6; turns > 0; turns--) await turn();
      await Promise.race(calls);
      await client.close();
      await Promise.all(calls);
    }
    const until = performance.now() + 5000;
    while (performance.now() < until) await Promise.all(Array.from({ length: 12 }, closeAtOnce));
    console.log("whole");`;
  expect(await run(script, 30_000)).toEqual({ code: 0, signal: null, output: "whole" });
}, 60_000);

it("a client that is closed with a request under way, on a lease that is nearly over, ends it and the process goes on", async () => {
  const script = `
    import { etcdBackend } from "${built.address("backends/etcd/index")}";
    const backend = await etcdBackend({ endpoints: ["${node.endpoint}"], prefix: "closed/" });
    const owner = { client: "c", pid: 1, host: "h" };
    const entry = (id) => ({ id, owner, mode: "write", weight: 1, ttlMs: 1000 });
    await backend.append("q", entry("c.1"));
    await backend.remove("q", "c.1");
    await new Promise((resolve) => setTimeout(resolve, 850));
    const asked = backend.append("q", entry("c.2")).catch(({ code }) => code);
    await backend.close();
    console.log(await asked);`;
  expect(await run(script, 10_000)).toEqual({ code: 0, signal: null, output: "LOCK_CLOSED" });
}, 30_000);
