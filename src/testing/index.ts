/** What the authors of backends and of tests need: the contract suite and a manual clock. Re-exports only. */
export { type ContractCase, type Need, unmetNeed } from "./case.ts";
export { contractCases } from "./cases/index.ts";
export {
  backendContract,
  checkSkips,
  type ContractOptions,
  type Skip,
  type TestContext,
  type TestRunner,
} from "./contract.ts";
export { ManualClock, settle } from "./manual-clock.ts";
export { manualMemoryStore } from "./memory-store.ts";
export { runCase } from "./run.ts";
export { type Observed, type Stage } from "./stage.ts";
export { type ContractStore, type Pace } from "./store.ts";
