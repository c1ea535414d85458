/** One case of the suite: a store and two clients of it, closed when the case has ended. */
import { it } from "vitest";
import type { Lock } from "../../src/core/lock.ts";
import type { LockManager } from "../../src/core/manager.ts";
import type { WebLocksStore } from "./suite.ts";

/** What a case has to work with. */
export interface Scene {
  readonly locks: LockManager;
  /** Another client of the same store: another tab, worker or machine. */
  readonly others: LockManager;
}

/** Runs a case on a store of its own. */
export function onStore(
  open: () => Promise<WebLocksStore>,
  name: string,
  check: (scene: Scene) => Promise<void>,
): void {
  it(name, async () => {
    const store = await open();
    try {
      const [locks, others] = [await store.client(), await store.client()];
      await check({ locks, others });
    } finally {
      await store.close();
    }
  });
}

/** A lock that is held until it is let go. */
export interface Hold {
  readonly lock: Lock;
  /** What request gave. */
  readonly ended: Promise<unknown>;
  readonly letGo: () => void;
}

/** Takes a lock by request and keeps it. */
export function hold(
  locks: LockManager,
  name: string,
  options: { mode?: "exclusive" | "shared" } = {},
): Promise<Hold> {
  return new Promise((resolve, reject) => {
    const ended = locks.request(name, options, (lock) => {
      return new Promise<void>((letGo) => resolve({ lock, ended, letGo }));
    });
    ended.catch(reject);
  });
}

/**
 * Waits until a condition holds, looking again and again: a store on a network needs time, and a case that never
 * comes true fails by the runner's limit.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await new Promise<void>((resolve) => {
      setTimeout(resolve, 1);
    });
  }
}
