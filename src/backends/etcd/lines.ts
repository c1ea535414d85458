/**
 * In which order the entries of one client join a queue: one after the other, and those who have to join again as they
 * stood before. What is sent is left to append.ts.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import * as methods from "./client/methods.ts";
import type { EtcdStore } from "./store.ts";

/** An entry that looks where it stands, and a promise of the end of that. */
interface Look {
  readonly seq: bigint;
  readonly promise: Promise<void>;
}

/** The lines of one client, one for each queue. */
export class Lines {
  /** For each queue that somebody is joining: who comes next. */
  readonly #next = new Map<string, (() => void)[]>();
  /** For each queue: who looks where it stands. */
  readonly #looking = new Map<string, Set<Look>>();

  /** Joins when all who came before have. Requests that are under way at once are served by etcd in any order. */
  async inTurn<T>(queue: string, join: () => Promise<T>): Promise<T> {
    const next = this.#next.get(queue);
    if (next === undefined) this.#next.set(queue, []);
    else await new Promise<void>((resolve) => next.push(resolve));
    try {
      return await join();
    } finally {
      const first = this.#next.get(queue)?.shift();
      if (first === undefined) this.#next.delete(queue);
      else first();
    }
  }

  /** An entry looks where it stands, until the function is called: by then it has its answer, or is in line. */
  looks(queue: string, seq: bigint): () => void {
    let over = (): void => {};
    const promise = new Promise<void>((resolve) => {
      over = resolve;
    });
    const look = { seq, promise };
    const looking = this.#looking.get(queue) ?? new Set<Look>();
    this.#looking.set(queue, looking);
    looking.add(look);
    return () => {
      looking.delete(look);
      if (looking.size === 0 && this.#looking.get(queue) === looking) this.#looking.delete(queue);
      over();
    };
  }

  /** Resolves when those ahead of an entry who look now have looked. */
  async looked(queue: string, seq: bigint): Promise<void> {
    await Promise.all(this.#ahead(queue, seq).map(({ promise }) => promise));
  }

  #ahead(queue: string, seq: bigint): readonly Look[] {
    return [...(this.#looking.get(queue) ?? [])].filter((other) => other.seq < seq);
  }

  /**
   * An entry has been told that it is gone: calls `rejoin` when those ahead of it are in line. One that was just looking has perhaps
   * not been told yet, or was told that it still stands there; by the next turn of the event loop it has heard the rest.
   */
  async rejoins(queue: string, seq: bigint, rejoin: () => void): Promise<void> {
    const over = this.looks(queue, seq);
    try {
      do {
        await this.looked(queue, seq);
        await nextTurn();
      } while (this.#ahead(queue, seq).length > 0);
      rejoin();
    } finally {
      over();
    }
  }
}

/**
 * Lets those get in line first who wait ahead of an entry that is gone, and are gone, too, but have not heard of it yet: a
 * theft takes out one after the other, and whoever looks last sees most.
 */
export async function afterThoseAhead(store: EtcdStore, queue: string, seq: bigint): Promise<void> {
  const { lines, calls, layout } = store;
  await lines.looked(queue, seq);
  const watch = store.watchOn(queue);
  const ahead = watch?.aheadOf(seq) ?? [];
  if (ahead.length === 0) return;
  const range = { ...layout.entries(queue), keysOnly: true, maxCreateRevision: seq - 1n };
  const { kvs } = await calls.read("a look at a queue", methods.range, range);
  const there = new Set(kvs.map(({ createRevision }) => createRevision));
  for (const { self } of ahead) if (!there.has(self.seq)) watch?.displaced(self.seq);
  await lines.looked(queue, seq);
}
