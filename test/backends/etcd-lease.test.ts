/** The leases of one client, on a real server behind a proxy. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TcpProxy } from "../../scripts/lib/for-tests.mjs";
import { Calls } from "../../src/backends/etcd/calls.ts";
import { EtcdClient } from "../../src/backends/etcd/client/client.ts";
import { etcdBackend } from "../../src/backends/etcd/index.ts";
import { Leases } from "../../src/backends/etcd/lease.ts";
import type { Backend } from "../../src/core/backend.ts";
import { systemClock } from "../../src/core/clock.ts";
import { startOne } from "../helpers/etcd.ts";
import { keys } from "../helpers/etcd-store.ts";
import { rejection } from "../helpers/promises.ts";

const ends: Array<() => Promise<void>> = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

it("one that is retired again while another cannot be had is told to nobody but who asked for that", async () => {
  const node = await startOne();
  ends.push(() => node.remove());
  const proxy = await TcpProxy.start(node.port);
  ends.push(() => proxy.close());
  const client = new EtcdClient({ endpoints: [`http://127.0.0.1:${proxy.port}`], callMs: 500 });
  ends.push(() => client.close());
  const leases = new Leases(new Calls(client, systemClock, 1_000), systemClock, () => {});
  const first = await leases.forTtl(5_000);
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    proxy.blackhole();
    leases.retire(first);
    await new Promise(setImmediate);
    const second = rejection(leases.forTtl(5_000));
    leases.retire(first);
    await second;
    await new Promise(setImmediate);
  } finally {
    process.off("unhandledRejection", note);
  }
  expect(unhandled).toEqual([]);
}, 20_000);

describe("what is taken out at its deadline", () => {
  const owner = { client: "c", pid: 1, host: "h" };
  const entry = { id: "c.1", owner, mode: "write", weight: 1, ttlMs: 1_000 } as const;
  let proxy: TcpProxy;
  let backend: Backend;
  let there: () => Promise<number>;

  beforeEach(async () => {
    const node = await startOne();
    ends.push(() => node.remove());
    proxy = await TcpProxy.start(node.port);
    ends.push(() => proxy.close());
    const endpoints = [`http://127.0.0.1:${proxy.port}`];
    backend = etcdBackend({ endpoints, prefix: "l/" });
    ends.push(() => backend.close());
    there = async () => (await keys(node.endpoint, "l/")).length;
  });

  it("is not renewed by an answer that was on its way", async () => {
    const joined = await backend.append("q", entry);
    const seq = joined?.self.seq ?? 0n;
    // The keep-alive is answered at 900 ms, the look reaches the server at 1,000, the removal at 1,100, when the look is answered.
    await sleep(700);
    proxy.up.delayMs = 100;
    proxy.down.delayMs = 100;
    const [answer] = await backend.renew([{ queue: "q", id: "c.1", seq, ttlMs: 1_000 }]);
    await sleep(500);
    expect({ outcome: answer?.outcome, there: await there() }).toEqual({ outcome: "gone", there: 0 });
  }, 20_000);

  it("is not what a further try has put since", async () => {
    const startedAt = performance.now();
    const at = (ms: number): Promise<void> => sleep(startedAt + ms - performance.now());
    // The lease is there when the first try vanishes.
    await backend.append("q", { ...entry, id: "c.0" });
    await backend.remove("q", "c.0");
    proxy.up.swallow = true;
    const lost = rejection(Promise.resolve(backend.append("q", entry)));
    await sleep(100);
    proxy.heal();
    expect(await lost).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
    await backend.list("q");
    // The entry is put at 950 ms; at 1,005 the deadline of the first try is over, and the store is asked whether it has arrived after all.
    await at(750);
    proxy.down.delayMs = 200;
    const joined = await backend.append("q", { ...entry, ttlMs: 20_000 });
    await at(1_500);
    expect(joined?.self.expiresInMs).toBeGreaterThan(0);
    expect(await there()).toBe(1);
  }, 20_000);
});
