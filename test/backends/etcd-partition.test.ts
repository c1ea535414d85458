/** Clients that can only reach a member which is cut off from the majority: they lose their locks before others get them. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { EndedWithLease } from "../helpers/etcd-ended.ts";
import { keys, leases } from "../helpers/etcd-store.ts";
import { isByStaleLeader, leaderOf } from "../helpers/etcd.ts";
import { splitWays } from "../helpers/etcd-split.ts";
import { expectValid, now, Recorded } from "../helpers/recorded.ts";

it.each(splitWays)(
  "a client on the minority side loses its lock before another holds it (cut off by %s)",
  async (_way, start) => {
    const cluster = await start();
    const managers: LockManager[] = [];
    try {
      const open = async (endpoints: readonly string[]): Promise<LockManager> => {
        const locks = await connect(etcdBackend({ endpoints, prefix: "f/", callMs: 1_000, pingMs: 500 }));
        managers.push(locks);
        return locks;
      };
      const recorded = new Recorded({ names: ["a"], ttlMs: 2_000, holdMs: 800, waitMs: 10_000 });
      const loops: Promise<void>[] = [];
      for (const [index, { endpoint }] of cluster.nodes.entries()) {
        loops.push(recorded.loop(`p${index}`, await open([endpoint])));
      }
      const leaderBackAt: bigint[] = [];
      const endpoints = cluster.nodes.map(({ endpoint }) => endpoint);
      const ended = new EndedWithLease(endpoints, "f/");
      onTestFinished(() => ended.close());
      // First who follows, then the leader: what a leader does that was out of touch comes last.
      for (const chooseLeader of [false, true]) {
        await sleep(1_500);
        const leader = await leaderOf(cluster.nodes);
        const index = cluster.nodes.findIndex((node) => (node === leader) === chooseLeader);
        const healed = recorded.fault("partition", `member ${index + 1}`);
        await cluster.cutOff(index + 1);
        await sleep(5_000);
        if (chooseLeader) leaderBackAt.push(now());
        await cluster.cutOff(index + 1, false);
        healed();
      }
      await sleep(3_000);
      recorded.stop();
      await Promise.all(loops);
      await Promise.all(managers.map((locks) => locks.close()));
      const endpoint = cluster.nodes[0]?.endpoint ?? "";
      const left = async (): Promise<number[]> => [
        (await keys(endpoint, "f/")).length,
        (await leases(endpoint)).length,
      ];
      await expect.poll(left, { timeout: 15_000, interval: 200 }).toEqual([0, 0]);
      const { violations, doubts } = recorded.judge({ keys: 0, leases: 0 }, { limit: 1_000 });
      const ours = violations.filter((violation) => !isByStaleLeader(violation, leaderBackAt, ended));
      expectValid({ violations: ours, doubts });
      expect(recorded.grants).toBeGreaterThan(10);
    } finally {
      await Promise.all(managers.map((locks) => locks.close()));
      await cluster.remove();
    }
  },
  90_000,
);
