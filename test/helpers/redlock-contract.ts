/** The contract on fleets of throwaway servers, for the tests of Redlock. */
import { afterAll, beforeAll, describe, it } from "vitest";
import type { RedlockSettings } from "../../src/backends/redlock/index.ts";
import type { ContractOptions } from "../../src/testing/index.ts";
import { contractStore, opens, startServers, type Servers } from "./redlock.ts";

/** On how many servers, and with which client. */
export interface Setup {
  readonly count: number;
  readonly client: keyof typeof opens;
  readonly settings?: RedlockSettings;
  readonly interleavings: number;
}

/** Starts the servers that the setups need, and gives what the contract needs for each. */
export function contractsOn(setups: readonly Setup[]): readonly ContractOptions[] {
  const fleets = new Map<number, Servers>();

  beforeAll(async () => {
    for (const count of new Set(setups.map((setup) => setup.count)))
      fleets.set(count, await startServers(count));
  });

  afterAll(async () => {
    await Promise.all([...fleets.values()].map((fleet) => fleet.close()));
  });

  return setups.map(({ count, client, settings = {}, interleavings }) => ({
    name: `redlock, ${count} nodes, ${client}${settings.fencing === false ? ", without tokens" : ""}`,
    open: () => {
      const servers = fleets.get(count);
      if (servers === undefined) throw new Error("there are no servers");
      return contractStore(servers, opens[client], settings);
    },
    runner: { describe, it },
    // A quarter of this is all that a node has for an answer, and both of two have to give one, on a busy machine too.
    shortMs: 1_000,
    interleavings,
    cancellations: 150,
  }));
}
