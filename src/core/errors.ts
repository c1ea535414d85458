/**
 * The one error class, its codes, and the few ways in which the core makes errors. Where the Web Locks standard names a
 * DOMException or a TypeError, that is what callers get.
 */

/** What went wrong, in one word. */
export type LockErrorCode =
  | "LOCK_TIMEOUT"
  | "LOCK_ABORTED"
  | "LOCK_LOST"
  | "LOCK_OUTCOME_UNKNOWN"
  | "LOCK_UNAVAILABLE"
  | "LOCK_UNSUPPORTED"
  | "LOCK_STALE_TOKEN"
  | "LOCK_INVALID"
  | "LOCK_CLOSED";

/** Each code, whether trying again later may help, and what it says. docs/errors.md has the same table for people. */
export const lockErrorCodes: Readonly<Record<LockErrorCode, { retryable: boolean; meaning: string }>> = {
  LOCK_TIMEOUT: { retryable: true, meaning: "the lock was not granted within the wait" },
  LOCK_ABORTED: { retryable: false, meaning: "the caller's signal ended the wait" },
  LOCK_LOST: { retryable: false, meaning: "holding is no longer certain" },
  LOCK_OUTCOME_UNKNOWN: { retryable: true, meaning: "a call may or may not have happened" },
  LOCK_UNAVAILABLE: { retryable: true, meaning: "the store cannot be reached or refuses to work" },
  LOCK_UNSUPPORTED: { retryable: false, meaning: "the store or this version cannot do what was asked" },
  LOCK_STALE_TOKEN: { retryable: false, meaning: "the resource has seen a newer token" },
  LOCK_INVALID: { retryable: false, meaning: "an argument is not allowed" },
  LOCK_CLOSED: { retryable: false, meaning: "the LockManager was closed" },
};

/** What an error says beyond its message. */
export interface LockErrorDetails {
  /** The name of the lock, or several joined by a comma. */
  readonly lock?: string | undefined;
  /** The name of the backend. */
  readonly backend?: string | undefined;
  /** The driver's error, or whatever else brought this about. */
  readonly cause?: unknown;
}

const brand = Symbol.for("holdfast.LockError");

/** Every failure that is not bad usage of the standard's own API; `instanceof` works across copies of the package. */
export class LockError extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }

  readonly code: LockErrorCode;
  readonly lock: string | undefined;
  readonly backend: string | undefined;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(code: LockErrorCode, message: string, details: LockErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = "LockError";
    this.code = code;
    this.lock = details.lock;
    this.backend = details.backend;
    this.retryable = lockErrorCodes[code].retryable;
    Object.defineProperty(this, brand, { value: true });
  }
}

/** Bad input: a TypeError, as the standard has it, that is also a LockError with code LOCK_INVALID. */
export function invalid(message: string, details: LockErrorDetails = {}): TypeError {
  const error = new TypeError(message);
  return Object.defineProperty(
    Object.assign(error, {
      code: "LOCK_INVALID" satisfies LockErrorCode,
      lock: details.lock,
      backend: details.backend,
      retryable: false,
    }),
    brand,
    { value: true },
  );
}

/** A combination that the standard rules out. */
export function notSupported(message: string): DOMException {
  return new DOMException(message, "NotSupportedError");
}

/** Whether an error is a LockError of a given code. */
export function hasCode(error: unknown, code: LockErrorCode): error is LockError {
  return error instanceof LockError && error.code === code;
}

/** An error of a backend as a LockError: a foreign one says nothing about what happened, so its outcome is unknown. */
export function asLockError(error: unknown, what: string, details: LockErrorDetails): LockError {
  if (error instanceof LockError) return error;
  return new LockError(
    "LOCK_OUTCOME_UNKNOWN",
    `${what} failed on ${details.backend ?? "the store"}, and it may or may not have happened: ${textOf(error)}`,
    { ...details, cause: error },
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
