/** The leases of one client, on a real server behind a proxy. */
import { afterEach, expect, it } from "vitest";
import { TcpProxy } from "../../scripts/lib/for-tests.mjs";
import { Calls } from "../../src/backends/etcd/calls.ts";
import { EtcdClient } from "../../src/backends/etcd/client/client.ts";
import { Leases } from "../../src/backends/etcd/lease.ts";
import { systemClock } from "../../src/core/clock.ts";
import { startOne } from "../helpers/etcd.ts";
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
