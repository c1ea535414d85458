/** What a story is and what it is given: one small thing that users of a client do, alone or with a colleague. The stories are in the other files. */
import type { Backend, Traits } from "../../../core/backend.ts";
import type { LockManager } from "../../../core/manager.ts";
import type { Violation } from "../../checks/check.ts";
import type { Dice } from "../../simulate/dice.ts";
import type { Observer } from "../observer.ts";
import type { Resource } from "../resource.ts";
import type { Party } from "./party.ts";

/** What a client is given. */
export interface Workload {
  readonly locks: LockManager;
  readonly observer: Observer;
  readonly dice: Dice;
  readonly fenced: Resource;
  readonly unfenced: Resource;
  /** What all lock names start with. */
  readonly prefix: string;
  readonly ttlMs: number;
  /** Until when, on the clock of the history, only locks of the calm opening are used. */
  readonly calmUntil: bigint;
  /** How many things it does at the same time. */
  readonly lanes: number;
  /** How many stories for two it tells at the same time. */
  readonly duetLanes: number;
  /** Its number among all clients, from 0: what one is enough for is left to the first. */
  readonly place: number;
  /** Whether nobody else uses the store, so that names without the prefix may be used. */
  readonly ownStore: boolean;
  /** Opens the store once more, as another client. */
  readonly open: () => Promise<Backend>;
}

/** The part of the name that locks of the calm opening have. */
export const calmMark = "calm/";

/** The part of the name of locks for which requests may come to the store twice, as those of a careless network do. */
export const echoMark = "echo/";

/** How long the ttl is in the calm opening, in ttls: whoever is not woken there waits for so long that it shows. */
export const calmTtls = 8;

/** How long anybody may wait in the calm opening, in ttls: the holders before it are short. */
export const calmWaitTtls = 3;

/** One of the things that users draw from. */
export interface Story {
  /** How often it is drawn, compared with the others. */
  readonly share: number;
  readonly needs?: (traits: Traits) => boolean;
  tell(load: Workload, me: Party): Promise<void>;
}

/** What a story for two is given: it has names of its own, so that it knows all that happens there. */
export interface Stage {
  readonly load: Workload;
  readonly me: Party;
  /** Another client. */
  readonly other: Party;
  /** A name that nobody else uses. */
  readonly name: (word: string) => string;
  /** The longest that anybody may wait, in milliseconds. */
  readonly boundMs: number;
  /** A ttl that is longer than that. */
  readonly longTtlMs: number;
  /** Another client, which the story closes. */
  readonly join: (word: string) => Promise<Party>;
  /** Says that something is wrong that no history shows; but not if the process stood still meanwhile. */
  readonly object: (invariant: Violation["invariant"], message: string) => void;
}

/** A story for two, in which nothing is broken and each step is known: told in the calm opening. */
export interface Duet {
  /** How long it may take, in milliseconds. */
  readonly lastsMs: (load: Workload) => number;
  readonly needs?: (load: Workload) => boolean;
  /** Whether it is so much work for the store that it comes after the others. */
  readonly late?: boolean;
  tell(stage: Stage): Promise<void>;
}

/** What is needed by stories about who comes first. */
export function ordered({ locks }: Workload): boolean {
  return locks.traits.order === "fifo";
}
