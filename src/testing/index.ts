/** What the authors of backends and of tests need: the contract suite and a manual clock. Re-exports only. */
export { ManualClock, settle } from "./manual-clock.ts";
