/**
 * The rule of fencing, in one place: a token below the highest that a resource has seen is refused, an equal one is the
 * same holder's. Where the highest is kept, and how the check and the write become one step, is left to each guard.
 */
import { LockError } from "../core/errors.ts";
import type { Holder } from "./token.ts";

/** Whether a token is older than the highest that a resource has seen; null: it has seen none. */
export function isStale(token: bigint, highest: bigint | null): boolean {
  return highest !== null && token < highest;
}

/** What every guard can do; how it writes depends on what it guards. */
export interface Guard {
  /**
   * Shows a token without writing. Once it resolves, no older holder's write comes any more: what is read after it stays
   * so until the holder writes. Rejects with LOCK_STALE_TOKEN if the resource has seen a newer one.
   */
  show(resource: string, holder: Holder): Promise<void>;
  /** The highest token that a resource has seen; null if none. */
  highest(resource: string): Promise<bigint | null>;
}

/** What a refusal tells. */
export interface Refusal {
  /** What was to be written, as people call it. */
  readonly resource: string;
  readonly token: bigint;
  /** The highest that it has seen, as decimal text. */
  readonly highest: bigint | string;
  /** The name of the lock, where it is known. */
  readonly lock?: string | undefined;
  /** What keeps the highest token. */
  readonly backend?: string | undefined;
}

/** The refusal of a stale token. Whoever throws it has written nothing. */
export function staleToken({ resource, token, highest, lock, backend }: Refusal): LockError {
  const message =
    `${resource} has seen token ${highest}, and ${token} is older: nothing was written. Somebody else has held the lock since: ` +
    "stop, and start over with a new lock if the work can be repeated";
  return new LockError("LOCK_STALE_TOKEN", message, { lock, backend });
}
