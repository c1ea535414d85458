/** The calls of the seam on a SqliteStore, for one client; it answers at once, without promises, while the file is free. */
import type {
  Answer,
  Backend,
  Browsable,
  Entry,
  Examinable,
  Finding,
  NewEntry,
  Renewal,
  Renewed,
  Snapshot,
  Traits,
} from "../../core/backend.ts";
import { LockError } from "../../core/errors.ts";
import type { SqliteStore } from "./store.ts";
import type { StoreClient } from "./watches.ts";

/** What SQLite promises. */
export const sqliteTraits: Traits = {
  scope: "machine",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "machine",
  tokens: "a counter in the file, at least the wall clock in microseconds",
  wake: "push",
  exclusivityBrokenBy: [],
  tokensRegressAfter: [],
  callOrder: true,
};

/** One client of a file. */
export class SqliteBackend implements Backend, Browsable, Examinable {
  readonly name = "sqlite";
  readonly traits: Traits = sqliteTraits;
  readonly #store: SqliteStore;
  readonly #slot: number;
  readonly #onClose: () => Promise<void>;
  #onEvicted: ((queue: string, id: string) => void) | null = null;
  /** What the store knows of this client. */
  readonly #client: { closed: boolean } & StoreClient = {
    closed: false,
    evicted: (queue, id) => this.#onEvicted?.(queue, id),
  };
  #closing: Promise<void> | null = null;

  /** @internal Made by sqliteBackend. */
  constructor(store: SqliteStore, onClose: () => Promise<void>) {
    this.#store = store;
    this.#onClose = onClose;
    this.#slot = store.join(this.#client);
  }

  append(queue: string, entry: NewEntry): Answer<Snapshot | null> {
    return this.#open().append(queue, entry, this.#slot);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    return this.#open().renew(renewals);
  }

  remove(queue: string, id: string, evict = false, seq?: bigint): Answer<boolean> {
    return this.#open().remove(queue, id, evict, seq);
  }

  async list(queue: string): Promise<readonly Entry[]> {
    return this.#open().list(queue);
  }

  watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Answer<() => void> {
    return this.#open().watch(queue, self, target, this.#client, onChange);
  }

  async queues(prefix: string): Promise<readonly string[]> {
    return this.#open().queues(prefix);
  }

  async examine(): Promise<readonly Finding[]> {
    return this.#open().examine();
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#onEvicted = listener;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#client.closed = true;
    this.#onEvicted = null;
    this.#store.leave(this.#slot);
    await this.#onClose();
  }

  #open(): SqliteStore {
    if (this.#client.closed) {
      throw new LockError("LOCK_CLOSED", "this client of sqlite was closed", { backend: this.name });
    }
    return this.#store;
  }
}
