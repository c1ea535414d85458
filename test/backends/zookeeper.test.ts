/** The ZooKeeper backend against the contract, on one server: with a session for each ttl, and with one for all. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type ZooKeeperOptions, zookeeperBackend } from "../../src/backends/zookeeper/index.ts";
import { backendContract, type ContractStore } from "../../src/testing/index.ts";
import { givenOrStarted, litterBelow, type ZooRig } from "../helpers/zookeeper.ts";

const runner = { describe, it };
const pace = { shortMs: 400, lagMs: 400, interleavings: 400 };
let rig: ZooRig;

beforeAll(async () => {
  rig = await givenOrStarted();
});
afterAll(() => rig.close());

/** A store of its own: a root that nobody else uses. */
function open(options: Partial<ZooKeeperOptions>): ContractStore {
  const root = `/contract-${randomUUID()}`;
  return {
    client: () => zookeeperBackend({ hosts: rig.hosts, root, tickMs: 100, ...options }),
    litter: () => litterBelow(rig.hosts, root),
    close: async () => {},
  };
}

const thirtyDays = {
  reason: "an entry is surely there for as long as its session, and servers bound the length of sessions",
  cases: ["an entry with a ttl of 30 days does not expire at once"],
};

backendContract({
  name: "zookeeper, a session for each ttl",
  open: () => open({}),
  runner,
  ...pace,
  skip: [
    thirtyDays,
    {
      reason: "an entry keeps the session that its first ttl asked for, and is not sure beyond it",
      cases: ["a renewal says how long the entry lives now", "a batch is answered in its own order"],
    },
  ],
});

backendContract({
  name: "zookeeper, one session",
  open: () => open({ session: "150s" }),
  runner,
  ...pace,
  skip: [thirtyDays],
});
