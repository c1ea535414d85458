/** The Redlock backend against the contract on two servers and on three, with and without tokens. */
import { backendContract } from "../../src/testing/index.ts";
import { contractsOn } from "../helpers/redlock-contract.ts";

const contracts = contractsOn([
  { count: 3, client: "by URL", interleavings: 20 },
  { count: 3, client: "ioredis", settings: { fencing: false }, interleavings: 20 },
  { count: 2, client: "ioredis", interleavings: 20 },
]);

for (const contract of contracts) backendContract(contract);
