/** The etcd backend against the contract on a cluster of three nodes; each client talks to the node it happens to choose. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { type EtcdNode, startEtcd } from "../../scripts/lib/for-tests.mjs";
import { backendContract } from "../../src/testing/index.ts";
import { etcdStore } from "../helpers/etcd-store.ts";

let nodes: readonly EtcdNode[] = [];

beforeAll(async () => {
  nodes = await startEtcd(3);
});

afterAll(async () => {
  await Promise.all(nodes.map((node) => node.remove()));
});

backendContract({
  name: "etcd, three nodes",
  open: () => etcdStore(nodes.map(({ endpoint }) => endpoint)),
  runner: { describe, it },
  shortMs: 1_000,
  lagMs: 1_000,
  patienceMs: 10_000,
  interleavings: 30,
  cancellations: 100,
});
