/** The calls of the seam on a MemoryStore: the reference for all other backends. It answers at once, without promises. */
import type {
  Backend,
  Browsable,
  Entry,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import { LockError } from "../../core/errors.ts";
import type { MemoryClient } from "./line.ts";
import type { MemoryStore } from "./store.ts";

/** What memory promises. */
export const memoryTraits: Traits = {
  scope: "process",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "process",
  tokens: "a counter that starts at the wall clock in microseconds",
  wake: "push",
  exclusivityBrokenBy: [],
  tokensRegressAfter: ["clock-step"],
  callOrder: true,
};

/** One client of a store in memory. */
export class MemoryBackend implements Backend, Browsable {
  readonly name = "memory";
  readonly traits: Traits = memoryTraits;
  readonly #store: MemoryStore;
  readonly #onClose: () => void;
  #onEvicted: ((queue: string, id: string) => void) | null = null;
  /** What the store knows of this client. */
  readonly #client: { closed: boolean } & MemoryClient = {
    closed: false,
    evicted: (queue, id) => this.#onEvicted?.(queue, id),
  };

  /** @internal Made by memoryBackend. */
  constructor(store: MemoryStore, onClose: () => void) {
    this.#store = store;
    this.#onClose = onClose;
  }

  append(queue: string, entry: NewEntry): Snapshot | null {
    return this.#open().append(queue, entry, this.#client);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    const store = this.#open();
    return renewals.map((renewal) => store.renew(renewal));
  }

  remove(queue: string, id: string, evict = false, seq?: bigint): boolean {
    return this.#open().remove(queue, id, evict, seq);
  }

  async list(queue: string): Promise<readonly Entry[]> {
    return this.#open().list(queue);
  }

  watch(queue: string, self: Entry, target: Entry | null, onChange: (fresh?: Snapshot) => void): () => void {
    return this.#open().watch(queue, self, target, this.#client, onChange);
  }

  async queues(prefix: string): Promise<readonly string[]> {
    return this.#open().queues(prefix);
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#onEvicted = listener;
  }

  async close(): Promise<void> {
    if (this.#client.closed) return;
    this.#client.closed = true;
    this.#onEvicted = null;
    this.#onClose();
  }

  #open(): MemoryStore {
    if (this.#client.closed)
      throw new LockError("LOCK_CLOSED", "this client of memory was closed", { backend: this.name });
    return this.#store;
  }
}
