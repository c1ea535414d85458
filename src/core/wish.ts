/** What is asked for, and what a client gives those who ask: the words that claims, client and options share. */
import type { Backend, Owner } from "./backend.ts";
import type { Claim } from "./claim.ts";
import type { Clock, Random } from "./clock.ts";
import type { Keeper } from "./keeper.ts";

/** What a client gives all its claims. */
export interface Client {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: Owner;
  readonly keeper: Keeper;
  /** By the id of an entry of this client: the claim of this client that waits for nothing but its leaving. */
  readonly behind: Map<string, Claim>;
  nextEntryId(): string;
  /** Calls `send` once the earlier first appends of this client to the queue have been answered or given up. */
  inOrder(queue: string, send: () => Promise<void>): Turn;
}

/** A place among the first appends of one client to one queue. */
export interface Turn {
  /** Lets the next one go, although this one was not answered. */
  passOn(): void;
}

/** What is asked for: the options of a request, checked, with defaults in place. */
export interface Wish {
  readonly name: string;
  readonly queue: string;
  readonly mode: "exclusive" | "shared";
  readonly weight: number;
  readonly permits: number | undefined;
  readonly ttlMs: number;
  /** How long to wait; Infinity: for ever. */
  readonly waitMs: number;
  /** Whether null is an answer when it is busy. */
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly metadata: string | undefined;
  readonly signal: AbortSignal | undefined;
}
