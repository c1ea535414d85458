/**
 * What the store really has, kept beside it: each entry from its append to its end. So a belief can be compared with
 * the truth at once, without waiting for a rival to be granted; the history is judged by the checker all the same.
 */
import type { Entry, NewEntry, Renewed, Snapshot } from "../../core/backend.ts";
import { ruleOf } from "../../core/grant.ts";
import type { HistoryEvent } from "../history.ts";
import type { Invariant, Violation } from "../checks/check.ts";
import type { World } from "./world.ts";

/** The life of one entry in the store. */
interface Life {
  readonly queue: string;
  readonly entry: Entry;
  readonly ttlMs: number;
  /** By the store's clock; Infinity for none of it. */
  expiresAtUs: number;
  removedAtUs: number;
  evictedAtUs: number;
  /** Its owner has given it up, though the store may not know yet. */
  left: boolean;
}

/** The lives of all entries, and what was found wrong by them. */
export class Ledger {
  readonly violations: Violation[] = [];
  readonly #world: World;
  /** Tokens are shown from 0 on, since a store goes on where the last one of the process stopped. */
  readonly #firstSeq: bigint;
  /** Without faults no entry may be appended twice, nor be left to its ttl. */
  readonly #calm: boolean;
  readonly #byId = new Map<string, Life>();
  readonly #bySeq = new Map<bigint, Life>();
  readonly #lives = new Map<string, Life[]>();

  constructor(world: World, firstSeq: bigint, calm: boolean) {
    this.#world = world;
    this.#firstSeq = firstSeq;
    this.#calm = calm;
  }

  appended(queue: string, asked: NewEntry, answer: Snapshot | null): void {
    if (answer === null) return;
    const { self } = answer;
    const before = this.#byId.get(self.id);
    if (before?.entry.seq === self.seq) return;
    if (this.#calm && before !== undefined && before.evictedAtUs === Infinity) {
      this.violate("F1", `The request ${self.id} lost its place in ${queue}, though there was no fault.`, []);
    }
    const life: Life = {
      queue,
      entry: self,
      ttlMs: asked.ttlMs,
      expiresAtUs: this.#world.nowUs + self.expiresInMs * 1000,
      removedAtUs: Infinity,
      evictedAtUs: Infinity,
      left: false,
    };
    this.#byId.set(self.id, life);
    this.#bySeq.set(self.seq, life);
    const lives = this.#lives.get(queue);
    if (lives === undefined) this.#lives.set(queue, [life]);
    else lives.push(life);
  }

  renewed(id: string, answer: Renewed | undefined): void {
    const life = this.#byId.get(id);
    if (life === undefined || answer?.outcome !== "renewed") return;
    life.expiresAtUs = this.#world.nowUs + answer.expiresInMs * 1000;
  }

  /** The owner of an entry begins to take it out: to its own other entries it is not in the way any more. */
  left(id: string): void {
    const life = this.#byId.get(id);
    if (life !== undefined) life.left = true;
  }

  removed(id: string, evict: boolean, wasThere: boolean): void {
    const life = this.#byId.get(id);
    if (life === undefined || !wasThere) return;
    life.removedAtUs = this.#world.nowUs;
    if (evict) life.evictedAtUs = this.#world.nowUs;
  }

  /** Compares the belief of holding with the truth. */
  believed(proc: string, token: bigint, event: HistoryEvent): void {
    const why = this.doubt(token);
    if (why === null) return;
    this.violate(
      "M6",
      `${JSON.stringify(proc)} believes to hold token ${token - this.#firstSeq}, but ${why}.`,
      [event],
    );
  }

  /**
   * Why the entry with a token does not hold; null if it does. Who was evicted may go on believing until a renewal that
   * was sent before has run out, but no longer.
   */
  doubt(token: bigint): string | null {
    const now = this.#world.nowUs;
    const life = this.#bySeq.get(token);
    if (life === undefined) return "the store never had it";
    if (life.evictedAtUs !== Infinity) {
      return now > life.evictedAtUs + life.ttlMs * 1000 ? "it was evicted longer than its ttl ago" : null;
    }
    if (life.removedAtUs <= now) return "it was removed";
    if (life.expiresAtUs <= now) return "its entry has expired";
    return this.#isGranted(life) ? null : "somebody is ahead of it in the store";
  }

  /** Once all is over: in a run without faults every entry was taken out by its owner. */
  close(): void {
    if (!this.#calm) return;
    for (const { entry, queue, removedAtUs } of this.#bySeq.values()) {
      if (removedAtUs === Infinity) {
        this.violate(
          "L2",
          `The entry ${entry.id} of ${queue} was left to its ttl, though there was no fault.`,
          [],
        );
      }
    }
  }

  /** Adds something that the history alone does not show. */
  violate(invariant: Invariant, message: string, events: readonly HistoryEvent[]): void {
    this.violations.push({ invariant, message, events });
  }

  #isGranted({ queue, entry }: Life): boolean {
    const now = this.#world.nowUs;
    let [count, weight] = [0, 0];
    let nearest: Entry | null = null;
    let nearestWriter: Entry | null = null;
    for (const other of this.#lives.get(queue) ?? []) {
      if (other.entry.seq >= entry.seq) break;
      if (other.removedAtUs <= now || other.expiresAtUs <= now) continue;
      if (other.left && other.entry.owner.client === entry.owner.client) continue;
      count += 1;
      weight += other.entry.weight;
      nearest = other.entry;
      if (nearest.mode === "write") nearestWriter = nearest;
    }
    return ruleOf(entry).grants(entry, { count, weight, nearest, nearestWriter });
  }
}
