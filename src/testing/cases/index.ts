/** All cases of the contract, in the order in which they run. */
import type { ContractCase } from "../case.ts";
import { appendCases } from "./append.ts";
import { expiryCases } from "./expiry.ts";
import { closeCases, litterCases } from "./litter.ts";
import { namesCases } from "./names.ts";
import { orderCases } from "./order.ts";
import { removeCases } from "./remove.ts";
import { renewCases } from "./renew.ts";
import { seqCases } from "./seq.ts";
import { snapshotCases } from "./snapshot.ts";
import { watchCases } from "./watch.ts";

/** Every case of the contract. */
export const contractCases: readonly ContractCase[] = [
  ...orderCases,
  ...snapshotCases,
  ...appendCases,
  ...seqCases,
  ...removeCases,
  ...renewCases,
  ...expiryCases,
  ...watchCases,
  ...namesCases,
  ...litterCases,
  ...closeCases,
];
