/**
 * A store of queues in arrival order with expiry, as small as can be: what the generated histories are true about.
 */
import type { GrantKind } from "../../src/verify/trace.ts";

export interface ToyEntry {
  readonly seq: bigint;
  readonly kind: GrantKind;
  readonly weight: number;
  expiresAt: bigint;
}

export class ToyStore {
  readonly #queues = new Map<string, ToyEntry[]>();
  #seq = 0n;
  readonly #permits: number;

  constructor(permits: number) {
    this.#permits = permits;
  }

  append(lock: string, kind: GrantKind, weight: number, expiresAt: bigint): ToyEntry {
    const entry: ToyEntry = { seq: ++this.#seq, kind, weight, expiresAt };
    this.#queue(lock).push(entry);
    return entry;
  }

  has(lock: string, entry: ToyEntry): boolean {
    return this.#queue(lock).includes(entry);
  }

  remove(lock: string, entry: ToyEntry): boolean {
    const queue = this.#queue(lock);
    const at = queue.indexOf(entry);
    if (at >= 0) queue.splice(at, 1);
    return at >= 0;
  }

  /** Takes out all that is ahead of an entry. */
  clearAhead(lock: string, entry: ToyEntry): void {
    const queue = this.#queue(lock);
    queue.splice(0, queue.indexOf(entry));
  }

  /** Takes out one entry that is due; false if there is none. */
  expireOne(now: bigint): boolean {
    for (const queue of this.#queues.values()) {
      const at = queue.findIndex(({ expiresAt }) => expiresAt <= now);
      if (at >= 0) {
        queue.splice(at, 1);
        return true;
      }
    }
    return false;
  }

  granted(lock: string, entry: ToyEntry): boolean {
    const queue = this.#queue(lock);
    const ahead = queue.slice(0, queue.indexOf(entry));
    if (entry.kind === "exclusive") return ahead.length === 0;
    if (entry.kind === "shared") return ahead.every(({ kind }) => kind === "shared");
    return ahead.reduce((sum, { weight }) => sum + weight, entry.weight) <= this.#permits;
  }

  list(lock: string): { holders: bigint[]; waiters: bigint[] } {
    const queue = this.#queue(lock);
    const seqs = (granted: boolean): bigint[] =>
      queue.filter((entry) => this.granted(lock, entry) === granted).map(({ seq }) => seq);
    return { holders: seqs(true), waiters: seqs(false) };
  }

  #queue(lock: string): ToyEntry[] {
    let queue = this.#queues.get(lock);
    if (queue === undefined) this.#queues.set(lock, (queue = []));
    return queue;
  }
}
