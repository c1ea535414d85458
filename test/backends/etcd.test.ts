/** The etcd backend against the contract, on one node. */
import { afterAll, beforeAll, describe, it } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { backendContract } from "../../src/testing/index.ts";
import { startOne } from "../helpers/etcd.ts";
import { etcdStore } from "../helpers/etcd-store.ts";

const given = process.env["HOLDFAST_TEST_ETCD_URL"];
let node: EtcdNode | undefined;
let endpoints: readonly string[] = [];

beforeAll(async () => {
  if (given === undefined) node = await startOne();
  endpoints = node === undefined ? [`http://${new URL(given ?? "").host}`] : [node.endpoint];
});

afterAll(async () => {
  await node?.remove();
});

backendContract({
  name: "etcd, one node",
  open: () => etcdStore(endpoints),
  runner: { describe, it },
  // A lease lasts at least a second here, and the server looks twice a second which have ended.
  shortMs: 1_000,
  lagMs: 1_000,
  patienceMs: 8_000,
  interleavings: 60,
  cancellations: 150,
});
