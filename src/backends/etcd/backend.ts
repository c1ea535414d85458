/** The calls of the seam on etcd, each checked for a closed client and passed on to the file that does it. */
import type {
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
import { semaphoreQueue } from "../../core/names.ts";
import { append } from "./append.ts";
import { closedError } from "./calls.ts";
import * as methods from "./client/methods.ts";
import { examine } from "./examine.ts";
import { listEntries, queueNames } from "./listing.ts";
import { evict, takeOut } from "./removal.ts";
import { renewAll } from "./renewal.ts";
import { createdExactlyAt } from "./steps.ts";
import { EtcdStore, type StoreParts } from "./store.ts";

/** What etcd promises. */
export const etcdTraits: Traits = {
  scope: "network",
  order: "fifo",
  shared: true,
  counted: true,
  expiry: "store",
  tokens: "the create revision of the entry's key",
  wake: "push",
  exclusivityBrokenBy: ["store-pause"],
  tokensRegressAfter: [],
  callOrder: false,
};

/** A comparison for a transaction of one's own: it holds as long as the lock's entry is in the store. */
export interface OwnershipGuard {
  readonly key: string;
  readonly target: "CREATE";
  readonly result: "EQUAL";
  readonly createRevision: bigint;
}

/** One client of an etcd cluster. */
export class EtcdBackend implements Backend, Browsable, Examinable {
  readonly name = "etcd";
  readonly place: string;
  readonly traits: Traits = etcdTraits;
  readonly #store: EtcdStore;
  #closing: Promise<void> | null = null;

  /** @internal Made by etcdBackend. */
  constructor(parts: StoreParts, place: string) {
    this.place = place;
    this.#store = new EtcdStore(parts);
  }

  async append(queue: string, entry: NewEntry): Promise<Snapshot | null> {
    return append(this.#open(), queue, entry);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
    return renewAll(this.#open(), renewals);
  }

  async remove(queue: string, id: string, evicted = false, seq?: bigint): Promise<boolean> {
    return evicted ? evict(this.#open(), queue, id, seq) : takeOut(this.#open(), queue, id, seq);
  }

  async list(queue: string): Promise<readonly Entry[]> {
    return listEntries(this.#open(), queue);
  }

  async queues(prefix: string): Promise<readonly string[]> {
    return queueNames(this.#open(), prefix);
  }

  watch(queue: string, self: Entry, target: Entry | null, onChange: (fresh?: Snapshot) => void): () => void {
    const store = this.#open();
    let ended = false;
    const unwatch = store.watch(queue).add({
      self,
      target: target?.seq ?? null,
      tell: (fresh, seen = false) => {
        const told = (isThere: boolean): void => {
          if (!ended && this.#closing === null) onChange(isThere ? fresh : undefined);
        };
        if (fresh === undefined || seen) told(seen);
        else void this.#isThere(queue, self).then(told);
      },
      gone: () => {
        const own = store.own(queue, self.id);
        if (own?.seq === self.seq) store.forget(own);
        void store.lines.rejoins(queue, self.seq, onChange);
      },
    });
    return () => {
      ended = true;
      unwatch();
    };
  }

  /** Whether an entry is in the store now: asked after a wait, before anybody believes that it holds. */
  async #isThere(queue: string, { id, seq }: Entry): Promise<boolean> {
    const own = this.#store.own(queue, id);
    const range =
      own?.seq === seq ? { key: own.key } : createdExactlyAt(this.#store.layout.entries(queue), seq);
    const { calls } = this.#store;
    const answer = await calls
      .read("a look at an entry", methods.range, { ...range, keysOnly: true })
      .catch(() => null);
    return answer?.kvs[0]?.createRevision === seq;
  }

  onEvicted(listener: (queue: string, id: string) => void): void {
    this.#store.guards.listen(listener);
  }

  /**
   * A comparison that makes a transaction of the caller's own fail once the lock has been lost. It covers writes to this
   * etcd only; elsewhere give the token to the resource.
   */
  ownershipGuard(lock: { readonly name: string; readonly token: bigint }): OwnershipGuard {
    const store = this.#open();
    const own =
      store.ownBySeq(lock.name, lock.token) ?? store.ownBySeq(semaphoreQueue(lock.name), lock.token);
    if (own !== undefined) {
      return { key: own.key, target: "CREATE", result: "EQUAL", createRevision: lock.token };
    }
    const message = `lock ${JSON.stringify(lock.name)} is not held by this client of etcd`;
    throw new LockError("LOCK_LOST", message, { lock: lock.name, backend: this.name });
  }

  /** Looks at the members of the cluster, their versions, alarms and size. */
  async examine(): Promise<readonly Finding[]> {
    return examine(this.#open().calls);
  }

  close(): Promise<void> {
    this.#closing ??= this.#store.close();
    return this.#closing;
  }

  #open(): EtcdStore {
    if (this.#closing !== null) throw closedError();
    return this.#store;
  }
}
