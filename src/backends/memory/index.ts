/** The memory backend: locks among all who share a store in one process. */
import type { Clock } from "../../core/clock.ts";
import { MemoryBackend } from "./backend.ts";
import { MemoryStore } from "./store.ts";

export { MemoryBackend, memoryTraits } from "./backend.ts";

/** Options of memoryBackend. */
export interface MemoryOptions {
  /**
   * Clients that give the same name share their locks; without a name the store is this client's own.
   * @default a store of its own
   */
  readonly store?: string | undefined;
  /** Where time comes from: for tests. */
  readonly clock?: Clock | undefined;
}

const shared = new Map<string, { store: MemoryStore; clients: number }>();

/** A client of a store in memory. */
export function memoryBackend(options: MemoryOptions = {}): MemoryBackend {
  const { store: name, clock } = options;
  if (name === undefined) {
    const store = new MemoryStore(clock);
    return new MemoryBackend(store, () => store.rest());
  }
  const used = shared.get(name) ?? { store: new MemoryStore(clock), clients: 0 };
  shared.set(name, used);
  used.clients += 1;
  return new MemoryBackend(used.store, () => {
    used.clients -= 1;
    if (used.clients > 0) return;
    used.store.rest();
    shared.delete(name);
  });
}
