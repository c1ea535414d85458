/** The Web Locks suite on ZooKeeper: two managers with sessions of their own stand for two frames. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll } from "vitest";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { givenOrStarted, type ZooRig } from "../helpers/zookeeper.ts";
import { webLocksSuite } from "./suite.ts";

let rig: ZooRig;
beforeAll(async () => {
  rig = await givenOrStarted();
});
afterAll(() => rig.close());

webLocksSuite("zookeeper", async () => {
  const root = `/web-locks-${randomUUID()}`;
  const clients: LockManager[] = [];
  return {
    client: async () => {
      const client = await connect(zookeeperBackend({ hosts: rig.hosts, root, tickMs: 100 }));
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
});
