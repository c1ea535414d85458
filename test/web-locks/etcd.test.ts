/** The Web Locks suite on etcd: two managers with leases of their own stand for two frames. */
import { afterAll, beforeAll } from "vitest";
import type { EtcdNode } from "../../scripts/lib/for-tests.mjs";
import { connect } from "../../src/connect.ts";
import { startOne } from "../helpers/etcd.ts";
import { etcdStore } from "../helpers/etcd-store.ts";
import { webLocksSuite } from "./suite.ts";

let node: EtcdNode;
beforeAll(async () => {
  node = await startOne();
});
afterAll(() => node.remove());

webLocksSuite("etcd", async () => {
  const store = await etcdStore([node.endpoint]);
  return { client: async () => connect(await store.client()), close: () => store.close() };
});
