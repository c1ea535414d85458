/**
 * The entries of one client that were granted: what a repaired node has to know of them, and, for those that are held for
 * longer than a moment, a word when somebody else takes them out. What is made of that is left to the core.
 */
import type { Clock, Timer } from "../../core/clock.ts";
import type { Hints } from "./hints.ts";
import { evictedKeyOf } from "./keys.ts";
import type { Node } from "./node.ts";

/** After how long a holder listens for its eviction, in milliseconds: what is held for less is not worth a subscription. */
const settledMs = 250;

/** How many listen at most: whoever is beyond that hears of its eviction with its next renewal. */
const mostListening = 1_000;

/** How long all nodes get to evict what one of them has told of, in milliseconds: before that a majority may still have it. */
const evictionMs = 20;

interface Holding {
  readonly queue: string;
  readonly key: string;
  readonly rest: string;
}

/** What one client holds, by id. */
export class Holdings {
  readonly #clock: Clock;
  readonly #hints: Hints;
  readonly #prefix: string;
  readonly #byId = new Map<string, Holding>();
  /** Those that listen, by key. */
  readonly #listening = new Map<string, string>();
  /** Those that were granted since the last look, and before it since the one before; some may be gone again. */
  #fresh: string[] = [];
  #older: string[] = [];
  #timer: Timer | null = null;
  /** Called with an entry that was evicted. */
  onEvicted: ((queue: string, id: string) => void) | null = null;

  constructor(clock: Clock, hints: Hints, prefix: string) {
    this.#clock = clock;
    this.#hints = hints;
    this.#prefix = prefix;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** What its value ends with; undefined if it is not held. */
  restOf(id: string): string | undefined {
    return this.#byId.get(id)?.rest;
  }

  /** An entry was granted. */
  add(id: string, queue: string, key: string, rest: string): void {
    this.#byId.set(id, { queue, key, rest });
    if (this.onEvicted === null) return;
    this.#fresh.push(id);
    this.#lookLater();
  }

  /** An entry is given back; gives what its value ends with. */
  take(id: string): string | undefined {
    const holding = this.#byId.get(id);
    if (holding === undefined) return undefined;
    this.#byId.delete(id);
    if (this.#listening.get(holding.key) === id) {
      this.#listening.delete(holding.key);
      this.#hints.unwant(holding.key, "holding");
    }
    return holding.rest;
  }

  // One timer for all: whoever is still there at the second look listens.

  #lookLater(): void {
    this.#timer ??= this.#clock.after(settledMs / 2, () => {
      this.#timer = null;
      for (const id of this.#older) this.#listen(id);
      this.#older = this.#fresh.filter((id) => this.#byId.has(id));
      this.#fresh = [];
      if (this.#older.length > 0) this.#lookLater();
    });
  }

  #listen(id: string): void {
    const holding = this.#byId.get(id);
    if (holding === undefined || this.#listening.size >= mostListening) return;
    this.#listening.set(holding.key, id);
    this.#hints.want(holding.key, "holding");
  }

  /** An entry was taken out of a lock: if it is still held here, it was not its owner who did it. */
  hint(key: string, id: string): void {
    if (this.#byId.get(id)?.key !== key) return;
    this.#clock.after(evictionMs, () => this.#tell(id));
  }

  /** A node tells of evictions from now on: it is asked whether there was one before. */
  stands(key: string, node: Node): void {
    const id = this.#listening.get(key);
    if (id === undefined) return;
    node.link.send("GET", [evictedKeyOf(this.#prefix, id)]).then(
      (mark) => mark !== null && this.#tell(id),
      // The next renewal says it.
      () => {},
    );
  }

  #tell(id: string): void {
    const holding = this.#byId.get(id);
    if (holding !== undefined) this.onEvicted?.(holding.queue, id);
  }

  close(): void {
    this.#timer?.cancel();
    this.#byId.clear();
    this.#listening.clear();
    this.#fresh = [];
    this.#older = [];
    this.onEvicted = null;
  }
}
