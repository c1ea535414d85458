/** The Redlock backend against the contract on five servers and on one; redlock-few.test.ts has it on two and three. */
import { backendContract } from "../../src/testing/index.ts";
import { contractsOn } from "../helpers/redlock-contract.ts";

const contracts = contractsOn([
  { count: 5, client: "ioredis", interleavings: 40 },
  // Making a client of node-redis takes a tenth of a second: one for each case is enough.
  { count: 1, client: "node-redis", interleavings: 20 },
]);

for (const contract of contracts) backendContract(contract);
