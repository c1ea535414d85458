/** Who in this process waits for which entry to leave; who has to be told is decided by the store. */
import type { Entry, Snapshot } from "../../core/backend.ts";
import { nothingAhead } from "../../core/grant.ts";
import type { First } from "./messages.ts";

/** A client of the store in this process. */
export interface StoreClient {
  /** After this nobody calls it back. */
  readonly closed: boolean;
  /** An entry of its own was evicted. */
  evicted(queue: string, id: string): void;
}

/** One who wants to hear that an entry has left, or that there is room. */
export interface Watch {
  readonly queue: string;
  /** The entry that waits. */
  readonly self: Entry;
  /** Its seq, as messages name it. */
  readonly waiter: string;
  readonly target: Entry | null;
  readonly client: StoreClient;
  readonly onChange: (fresh?: Snapshot) => void;
  /** Other processes that are kept in touch with for it, and how that is ended. */
  readonly kept: Map<string, () => void>;
}

/** All watches of a process on one file. */
export class Watches {
  /** By the seq of the entry that waits. */
  readonly #byWaiter = new Map<string, Set<Watch>>();

  add(watch: Watch): void {
    const watches = this.#byWaiter.get(watch.waiter) ?? new Set();
    this.#byWaiter.set(watch.waiter, watches.add(watch));
  }

  /** Ends a watch; again does nothing. */
  end(watch: Watch): void {
    for (const release of watch.kept.values()) release();
    watch.kept.clear();
    const watches = this.#byWaiter.get(watch.waiter);
    if (watches?.delete(watch) && watches.size === 0) this.#byWaiter.delete(watch.waiter);
  }

  /** Calls whoever watches for an entry, once. */
  tell(waiter: string, fresh?: Snapshot): void {
    for (const watch of this.#byWaiter.get(waiter) ?? []) this.call(watch, fresh);
  }

  /** Calls whoever watches for an entry that nobody is ahead of any more. */
  tellFirst({ text }: First, nowUs: number): void {
    const [waiter = "", sinceUs, untilUs] = text.split(" ");
    for (const watch of this.#byWaiter.get(waiter) ?? []) {
      const expiresInMs = Math.max(0, (Number(untilUs) - nowUs) / 1000);
      const self = { ...watch.self, expiresInMs, ageMs: (nowUs - Number(sinceUs)) / 1000 };
      this.call(watch, { self, ahead: nothingAhead });
    }
  }

  /** Calls one, and ends it. */
  call(watch: Watch, fresh?: Snapshot): void {
    this.end(watch);
    if (!watch.client.closed) watch.onChange(fresh);
  }

  /** Those for which a process is kept in touch with. */
  on(process: string): readonly Watch[] {
    return [...this.#byWaiter.values()].flatMap((watches) =>
      [...watches].filter(({ kept }) => kept.has(process)),
    );
  }

  /** Ends all watches of a client. */
  endAll(client: StoreClient): void {
    for (const watches of this.#byWaiter.values()) {
      for (const watch of watches) if (watch.client === client) this.end(watch);
    }
  }
}
