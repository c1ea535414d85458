/** A LockManager on a memory store under a manual clock, with a controlled backend in between. */
import { memoryBackend } from "../../src/backends/memory/index.ts";
import type { Entry, Owner, Snapshot, Traits } from "../../src/core/backend.ts";
import { LockManager, type ManagerOptions } from "../../src/core/manager.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { Controlled } from "./controlled.ts";

/** One client, and ways to look at its store from outside. */
export interface Rig {
  readonly clock: ManualClock;
  readonly backend: Controlled;
  readonly locks: LockManager;
  /** The live entries of a queue, as the store has them. */
  readonly entries: (queue: string) => Promise<readonly Entry[]>;
  /** Another client of the same store. */
  readonly other: (options?: RigOptions) => Rig;
  /** An entry of a client that then died: nobody renews it. */
  readonly plant: (queue: string, entry?: Planted) => Snapshot;
  /** Takes an entry out as an operator would: nobody is told. */
  readonly erase: (queue: string, id: string) => boolean;
}

interface Planted {
  id?: string;
  ttlMs?: number;
  mode?: "read" | "write";
  weight?: number;
  permits?: number;
}

/** How a rig is set up. */
export interface RigOptions extends ManagerOptions {
  readonly traits?: Partial<Traits>;
}

let stores = 0;

/** A client of a store of its own. */
export function rig(options: RigOptions = {}): Rig {
  return rigOn(`rig-${++stores}`, new ManualClock(), options);
}

const dead: Owner = { client: "dead", host: "elsewhere", pid: 1 };

function rigOn(store: string, clock: ManualClock, { traits, ...options }: RigOptions): Rig {
  const backend = new Controlled(memoryBackend({ store, clock }), traits);
  const outside = memoryBackend({ store, clock });
  const locks = new LockManager(backend, { clock, random: () => 0.5, ...options });
  return {
    clock,
    backend,
    locks,
    entries: (queue) => outside.list(queue),
    other: (more = {}) => rigOn(store, clock, more),
    plant: (queue, { id = "planted", ttlMs = 30_000, mode = "write", weight = 1, permits } = {}) => {
      const snapshot = outside.append(queue, { id, owner: dead, mode, weight, permits, ttlMs });
      if (snapshot === null) throw new Error("the store refused a planted entry");
      return snapshot;
    },
    erase: (queue, id) => outside.remove(queue, id),
  };
}
