/** `holdfast verify` on an etcd of its own at a terminal: Ctrl-C reaches the verifier alone, which ends the rest in order. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { etcdCluster } from "../../src/verify/clusters/etcd.ts";
import { Fleet } from "../../src/verify/live/fleet.ts";
import { CliRig } from "../helpers/cli.ts";
import { noTask } from "../helpers/no-task.ts";

it("ends soon at Ctrl-C while one of its servers is dead, and leaves nothing", async () => {
  const rig = new CliRig();
  onTestFinished(() => rig.end());
  const temporary = join(rig.folder, "tmp");
  mkdirSync(temporary);
  const words = ["verify", "--cluster", "etcd", "--for", "5m", "--clients", "2", "--ttl", "10s"];
  const running = rig.spawn(
    "script",
    ["-qefc", `exec ${rig.line([...words, "--faults", "server-kill"])}`, "/dev/null"],
    { TERM: "xterm", SHELL: "/bin/sh", TMPDIR: temporary },
  );
  await running.until(/ 1 fault /);
  const typedAt = performance.now();
  running.type("\u0003");
  const { code } = await running.ended;
  expect(code).toBe(130);
  // To bring a member back whose friends are dead would take half a minute, in vain.
  expect(performance.now() - typedAt).toBeLessThan(20_000);
  await running.deserted;
  expect(readdirSync(temporary)).toEqual([]);
}, 120_000);

it("cuts off who follows; the leader, after which nothing is promised, only where it is named", async () => {
  const cluster = await etcdCluster();
  onTestFinished(() => cluster.stop());
  const endpoints = cluster.url.slice("etcd://".length).split(",");
  const leading = async (): Promise<number> => {
    const texts = endpoints.map(async (each) => (await fetch(`http://${each}/metrics`)).text());
    return (await Promise.all(texts)).findIndex((text) => text.includes("\netcd_server_is_leader 1"));
  };
  // Whoever was cut off for longer than an election takes has the others vote when it is back.
  const leader = async (): Promise<string> => {
    let [leads, since] = [-1, performance.now()];
    while (leads < 0 || performance.now() - since < 2_000) {
      const now = await leading();
      if (now !== leads) [leads, since] = [now, performance.now()];
      await sleep(50);
    }
    return `etcd ${leads + 1}`;
  };
  const fleet = new Fleet(cluster.url, "", noTask);
  const kinds = new Map(cluster.faults.map((fault) => [fault.kind, fault]));
  for (const [kind, is, pick, hitsLeader] of [
    ["partition", null, 0, false],
    ["partition", null, 0.5, false],
    ["partition", null, 0.99, false],
    ["leader-partition", "store-pause", 0.99, true],
  ] as const) {
    const before = await leader();
    const fault = kinds.get(kind);
    const struck = await fault?.strike(pick, fleet);
    await struck?.heal?.();
    expect({ kind, is: fault?.is, hits: struck?.target === before }).toEqual({ kind, is, hits: hitsLeader });
  }
  expect(cluster.usual).toEqual(["server-kill", "partition"]);
}, 60_000);
