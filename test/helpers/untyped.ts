/** A LockManager as callers without types see it: any argument may be anything. */
import type { LockManager } from "../../src/core/manager.ts";

/** The calls of a LockManager with unchecked arguments. */
export interface Untyped {
  request(...args: unknown[]): Promise<unknown>;
  acquire(...args: unknown[]): Promise<unknown>;
  tryAcquire(...args: unknown[]): Promise<unknown>;
  query(...args: unknown[]): Promise<unknown>;
  semaphore(...args: unknown[]): {
    request(...args: unknown[]): Promise<unknown>;
    acquire(...args: unknown[]): Promise<unknown>;
    tryAcquire(...args: unknown[]): Promise<unknown>;
  };
}

/** The same manager, without the help of types. */
export function untyped(locks: LockManager): Untyped {
  return locks;
}
