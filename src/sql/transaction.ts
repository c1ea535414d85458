/** Options of the locks in users' own transactions, the same for all databases. */
import { type Duration, durationMs } from "../core/duration.ts";
import { invalid } from "../core/errors.ts";

/** How a lock in a transaction treats those that are busy: one of these, or none to wait as long as it takes. */
export interface RowLockOptions {
  /** How long to wait; when it is over, LOCK_TIMEOUT is thrown. The transaction goes on. */
  readonly wait?: Duration | undefined;
  /** Do not wait: LOCK_TIMEOUT is thrown at once. The transaction goes on. */
  readonly nowait?: boolean | undefined;
  /** Do not wait: false is given at once. */
  readonly skipLocked?: boolean | undefined;
}

/** How long to wait, in milliseconds; null: as long as it takes. */
export function waitMsOf({ wait, nowait = false, skipLocked = false }: RowLockOptions): number | null {
  if ([wait !== undefined, nowait, skipLocked].filter(Boolean).length > 1) {
    throw invalid("give one of wait, nowait and skipLocked");
  }
  if (nowait || skipLocked) return 0;
  return wait === undefined ? null : durationMs(wait, { option: "wait", leastMs: 0 });
}
