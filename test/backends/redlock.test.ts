/** The Redlock backend against the contract on one, two, three and five servers, with and without tokens. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { backendContract } from "../../src/testing/index.ts";
import { contractStore, opens, startServers, type Servers } from "../helpers/redlock.ts";

const fleets = new Map<number, Servers>();

beforeAll(async () => {
  for (const count of [1, 2, 3, 5]) fleets.set(count, await startServers(count));
});

afterAll(async () => {
  await Promise.all([...fleets.values()].map((fleet) => fleet.close()));
});

const setups = [
  { count: 5, name: "five, ioredis", open: opens.ioredis, settings: {}, interleavings: 40 },
  { count: 3, name: "three, by URL", open: opens["by URL"], settings: {}, interleavings: 20 },
  {
    count: 3,
    name: "three, ioredis, without tokens",
    open: opens.ioredis,
    settings: { fencing: false },
    interleavings: 20,
  },
  { count: 2, name: "two, ioredis", open: opens.ioredis, settings: {}, interleavings: 20 },
  // Making a client of node-redis takes a tenth of a second: one for each case is enough.
  { count: 1, name: "one, node-redis", open: opens["node-redis"], settings: {}, interleavings: 20 },
];

for (const { count, name, open, settings, interleavings } of setups) {
  backendContract({
    name: `redlock, ${name}`,
    open: () => {
      const servers = fleets.get(count);
      if (servers === undefined) throw new Error("there are no servers");
      return contractStore(servers, open, settings);
    },
    runner: { describe, it },
    interleavings,
    cancellations: 150,
  });
}
