/**
 * What the Web Locks standard promises, checked by behaviour through LockManager: for every backend that keeps order.
 * Where a fleet needs other rules (names, types that are not coerced), the case says so.
 */
import { describe } from "vitest";
import type { LockManager } from "../../src/core/manager.ts";
import { abortCases } from "./abort.ts";
import { callbackCases } from "./callbacks.ts";
import { modeCases } from "./modes.ts";
import { queryCases } from "./query.ts";
import { takingCases } from "./taking.ts";

/** Opens clients of one store: each store that is opened is empty and nobody else's. */
export interface WebLocksStore {
  /** Another client of this store. */
  client(): Promise<LockManager>;
  /** Closes all clients. */
  close(): Promise<void>;
}

/** Runs the suite; `open` gives a new, empty store for each case. */
export function webLocksSuite(name: string, open: () => Promise<WebLocksStore>): void {
  describe(`Web Locks on ${name}`, () => {
    callbackCases(open);
    modeCases(open);
    takingCases(open);
    abortCases(open);
    queryCases(open);
  });
}
