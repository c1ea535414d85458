/** All cases of the contract, in the order in which they run. */
import type { ContractCase } from "../case.ts";
import { appendCases } from "./append.ts";
import { expiryCases } from "./expiry.ts";
import { fencingCases, reentrancyCases, semaphoreCases, severalCases } from "./fencing.ts";
import { closeCases, litterCases } from "./litter.ts";
import { lossCases } from "./loss.ts";
import { namesCases } from "./names.ts";
import { orderCases } from "./order.ts";
import { removeCases } from "./remove.ts";
import { renewCases } from "./renew.ts";
import { seqCases } from "./seq.ts";
import { snapshotCases } from "./snapshot.ts";
import { stormCases } from "./storm.ts";
import { watchCases } from "./watch.ts";
import { webLocksCases } from "./web-locks.ts";

/** Every case of the contract: first those on a Backend, then those through LockManager. */
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
  ...webLocksCases,
  ...lossCases,
  ...fencingCases,
  ...reentrancyCases,
  ...severalCases,
  ...semaphoreCases,
  ...stormCases,
];
