/** What an author of a backend gives the contract: a fresh store, and how patient the cases have to be with it. */
import type { Backend } from "../core/backend.ts";
import type { Clock } from "../core/clock.ts";

/** One fresh store, for one case. */
export interface ContractStore {
  /** Another client of the same store, with a connection of its own. */
  client(): Promise<Backend> | Backend;
  /**
   * Lets the store's time pass, in milliseconds.
   * @default a real sleep
   */
  elapse?(ms: number): Promise<void>;
  /**
   * The clock that the clients of the store live by.
   * @default the system's
   */
  readonly clock?: Clock;
  /** Names what is left in the store beyond what list and queues tell, or open beyond what clients still need. */
  litter?(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** How fast a store is, and how much of it is to be asked. */
export interface Pace {
  /**
   * A ttl that the store keeps well, in milliseconds: entries that are to expire get it.
   * @default 200
   */
  readonly shortMs?: number | undefined;
  /**
   * How long after its ttl an entry may still be there, in milliseconds.
   * @default 100
   */
  readonly lagMs?: number | undefined;
  /**
   * How long a case waits for what must come, in milliseconds.
   * @default 5000
   */
  readonly patienceMs?: number | undefined;
  /**
   * How long one case may take in all, in milliseconds of real time.
   * @default 60000
   */
  readonly limitMs?: number | undefined;
  /**
   * How many requests the storm of cancellations makes.
   * @default 300
   */
  readonly cancellations?: number | undefined;
  /**
   * How many random programs the interleavings run.
   * @default 10000
   */
  readonly interleavings?: number | undefined;
  /**
   * The seed of all chance in the cases.
   * @default 1
   */
  readonly seed?: number | undefined;
}
