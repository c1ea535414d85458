/** The public surface of holdfast: re-exports only. */
export { connect, type ConnectOptions } from "./connect.ts";
export {
  isBrowsable,
  isExaminable,
  isMigratable,
  type Ahead,
  type Answer,
  type Backend,
  type Browsable,
  type Entry,
  type EntryMode,
  type Examinable,
  type Fault,
  type Finding,
  type Migratable,
  type NewEntry,
  type Owner,
  type Renewal,
  type Renewed,
  type Snapshot,
  type Traits,
} from "./core/backend.ts";
export { type LockEvent, type LockEvents, type LossCause } from "./core/channels.ts";
export { type Clock, type Random, type Timer } from "./core/clock.ts";
export { type Duration } from "./core/duration.ts";
export { LockError, type LockErrorCode, type LockErrorDetails, lockErrorCodes } from "./core/errors.ts";
export { ruleOf } from "./core/grant.ts";
export { compose, type Layer } from "./core/layers.ts";
export { Lock } from "./core/lock.ts";
export { LockSet } from "./core/lock-set.ts";
export { LockManager, type ManagerOptions } from "./core/manager.ts";
export {
  type AcquireOptions,
  type HoldOptions,
  type LockMode,
  type PermitOptions,
  type RequestOptions,
  type TryOptions,
} from "./core/options.ts";
export { type LockInfo, type LockManagerSnapshot } from "./core/query.ts";
export { Semaphore } from "./core/semaphore.ts";
export { type Requirements } from "./core/traits.ts";
