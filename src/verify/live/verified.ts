/** What a run is told, what it says while it goes on, and what it has shown. Running it is left to verify.ts. */
import type { Traits } from "../../core/backend.ts";
import type { HistoryEvent } from "../history.ts";
import type { Measured } from "./fleet.ts";
import type { Judgement } from "./judge.ts";
import type { ServerFault } from "./nemesis.ts";
import type { WriteTally } from "./tally.ts";

/** What to do. */
export interface VerifyOptions {
  readonly url: string;
  readonly forMs: number;
  readonly clients: number;
  readonly faults: readonly string[];
  readonly seed: number;
  readonly ttlMs: number;
  /** Faults of servers that may be asked for in `faults`. */
  readonly servers?: readonly ServerFault[];
  /** Faults of servers that may be asked for and cannot be had on this machine, and why. */
  readonly impossible?: ReadonlyMap<string, string>;
  /** Whether nobody else uses the store: then names are used, too, that others might have. @default false */
  readonly ownStore?: boolean;
  /** From the start of one fault to the start of the next; by the ttl if not given. */
  readonly gapMs?: readonly [least: number, most: number];
  /** How many things a client does at the same time. @default 2 */
  readonly lanes?: number;
  /** Ends the run early: what is broken is healed, what is left is taken away, and the promise rejects with its reason. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

/** Where a run is. */
export interface Progress {
  readonly phase: "starting" | "calm" | "faults" | "healing" | "checking";
  readonly elapsedMs: number;
  readonly totalMs: number;
  readonly grants: number;
  readonly faults: number;
}

/** What a run has shown. */
export interface Verified {
  readonly judgement: Judgement;
  readonly events: readonly HistoryEvent[];
  readonly traits: Traits;
  readonly backend: string;
  readonly writes: Record<"fenced" | "unfenced", WriteTally>;
  readonly grants: number;
  readonly losses: number;
  /** How often each fault was brought. */
  readonly faults: ReadonlyMap<string, number>;
  /** Faults that were asked for and cannot be had here, and why. */
  readonly impossible: ReadonlyMap<string, string>;
  /** Memory of the clients over time. */
  readonly samples: ReadonlyMap<string, readonly Measured[]>;
}
