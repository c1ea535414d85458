/**
 * Watches on this client's own entries, so that a holder hears at once when somebody takes its entry out or revokes its
 * lease. Only entries that stay for a while get one: a hint, which the next renewal would give as well.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import type { EtcdClient } from "./client/client.ts";
import { eventType, type WatchEvent, watchFilter } from "./client/messages/watch.ts";
import type { Watch } from "./client/watch-stream.ts";
import { saysEvicted } from "./entry-text.ts";
import type { OwnEntry } from "./lease.ts";

/** After how long an entry gets a guard, in milliseconds: most are gone by then. */
const settledMs = 500;
/** How many get one at once: a store that is slow must not get slower by guards. */
const mostAtOnce = 50;

/** The guards of one client. */
export class Guards {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  /** Entries without a guard, and since when, oldest first. */
  readonly #new = new Map<OwnEntry, number>();
  /** Entries with a guard; null while it is being set up. */
  readonly #standing = new Map<OwnEntry, Watch | null>();
  /** Entries whose history was compacted away: what became of them up to now, only a look can tell. */
  readonly #unseen = new WeakSet<OwnEntry>();
  #timer: Timer | null = null;
  #listener: ((queue: string, id: string) => void) | null = null;

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Who is told that an entry was taken out. Without a listener there are no guards. */
  listen(listener: (queue: string, id: string) => void): void {
    this.#listener = listener;
  }

  add(own: OwnEntry): void {
    if (this.#listener === null) return;
    this.#new.set(own, this.#clock.recent());
    this.#timer ??= this.#clock.after(settledMs, () => this.#look());
  }

  remove(own: OwnEntry): void {
    this.#new.delete(own);
    this.#standing.get(own)?.cancel();
    this.#standing.delete(own);
  }

  close(): void {
    this.#listener = null;
    this.#timer?.cancel();
    this.#new.clear();
    for (const watch of this.#standing.values()) watch?.cancel();
    this.#standing.clear();
  }

  #look(): void {
    this.#timer = null;
    const now = this.#clock.now();
    let count = 0;
    for (const [own, since] of this.#new) {
      if (since + settledMs / 2 > now || ++count > mostAtOnce) break;
      this.#new.delete(own);
      void this.#guard(own);
    }
    if (this.#new.size > 0) this.#timer = this.#clock.after(settledMs, () => this.#look());
  }

  async #guard(own: OwnEntry): Promise<void> {
    if (own.seq === null) return;
    this.#standing.set(own, null);
    const request = {
      key: own.key,
      startRevision: this.#unseen.has(own) ? 0n : own.seq + 1n,
      filters: [watchFilter.noPut],
      prevKv: true,
    };
    try {
      const watch = await this.#client.watch(request, {
        created: () => {
          if (this.#unseen.has(own) && this.#standing.has(own)) this.#listener?.(own.queue, own.id);
        },
        events: (events) => this.#told(own, events),
        ended: ({ compactRevision }) => {
          if (compactRevision > 0n) this.#unseen.add(own);
          if (this.#standing.delete(own)) this.add(own);
        },
      });
      if (this.#standing.has(own)) this.#standing.set(own, watch);
      else watch.cancel();
    } catch {
      if (this.#standing.delete(own)) this.add(own);
    }
  }

  #told(own: OwnEntry, events: readonly WatchEvent[]): void {
    const gone = events.find(({ type }) => type === eventType.delete);
    if (gone === undefined || !this.#standing.has(own)) return;
    own.ended = saysEvicted(gone.prevKv?.value) ? "evicted" : "gone";
    this.#listener?.(own.queue, own.id);
  }
}
