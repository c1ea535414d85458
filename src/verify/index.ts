/** Evidence: record what clients of a lock saw, judge it, make a failure small, show it. */
export {
  checkHistory,
  checkText,
  INVARIANTS,
  type Checked,
  type CheckOptions,
  type CheckResult,
} from "./checker.ts";
export type { Invariant, Violation } from "./checks/check.ts";
export {
  History,
  HistoryError,
  mergeHistories,
  type HistoryEvent,
  type HistoryOptions,
  type NewEvent,
  type Operation,
  type Phase,
} from "./history.ts";
export { formatEvent, formatHistory, parseHistory } from "./history-text.ts";
export { linearize, type Linearization, type Model, type TimedOp } from "./linearize.ts";
export { renderReport, type ReportOptions } from "./report.ts";
export { shrink, shrinkHistory, type Fails, type Grouping } from "./shrink.ts";
export { simulate, simulateAll, type Simulated } from "./simulate.ts";
