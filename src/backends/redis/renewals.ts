/**
 * Many renewals as few calls: entries that are taken to be alone in their queues travel in runs, of which the answer names only
 * those that are not; these are asked for one by one. How calls travel is left to outbox.ts.
 */
import type { Renewal, Renewed } from "../../core/backend.ts";
import type { Taker } from "./batch.ts";
import { keepCall, ownOf, renewCall } from "./calls.ts";
import { failureOf } from "./failures.ts";
import type { PlacedKeys } from "./keys.ts";
import { asText } from "./link.ts";
import type { Outbox } from "./outbox.ts";
import { wholeMs } from "./records.ts";

/** How many entries a run has at most: two of them fill a batch. */
const longestRun = 250;

/** The renewals of one call of the seam. */
export class Renewals {
  readonly #renewals: readonly Renewal[];
  readonly #outbox: Outbox;
  readonly #keysOf: (queue: string) => PlacedKeys;
  readonly #resolve: (answers: readonly Renewed[]) => void;
  readonly #answers: Renewed[];
  #left: number;
  /** The runs that entries may still join, by slot. */
  readonly #runs = new Map<number, Run>();

  constructor(
    renewals: readonly Renewal[],
    outbox: Outbox,
    keysOf: (queue: string) => PlacedKeys,
    resolve: (answers: readonly Renewed[]) => void,
  ) {
    this.#renewals = renewals;
    this.#outbox = outbox;
    this.#keysOf = keysOf;
    this.#resolve = resolve;
    this.#answers = renewals.map(() => unasked);
    this.#left = renewals.length;
  }

  /** Sends all of them; those that are known to wait behind others one by one. */
  send(isWaiting: (id: string) => boolean): void {
    this.#renewals.forEach((renewal, place) => {
      if (isWaiting(renewal.id)) this.ask(place);
      else this.#join(renewal, place);
    });
    for (const run of this.#runs.values()) this.#sendRun(run);
    if (this.#left === 0) this.#resolve(this.#answers);
  }

  #join({ queue, id, seq, ttlMs }: Renewal, place: number): void {
    const { queue: key, slot } = this.#keysOf(queue);
    const wholeTtlMs = wholeMs(ttlMs);
    let run = this.#runs.get(slot);
    if (run === undefined || run.ttlMs !== wholeTtlMs || run.keys.length === longestRun) {
      if (run !== undefined) this.#sendRun(run);
      run = new Run(this, slot, wholeTtlMs);
      this.#runs.set(slot, run);
    }
    run.keys.push(key);
    run.places.push(place);
    run.owned += ownOf(id, seq);
  }

  #sendRun(run: Run): void {
    const { slot, keys, ttlMs, owned } = run;
    this.#outbox.addRun(slot, keys, keepCall(ttlMs, keys.length, owned), run);
  }

  /** Asks for one alone. */
  ask(place: number): void {
    const renewal = this.#renewals[place];
    if (renewal === undefined) return;
    const { queue, id, seq, ttlMs } = renewal;
    const taker = new Renewing(this, place);
    this.#outbox.add(this.#keysOf(queue), renewCall(id, seq, wholeMs(ttlMs)), taker);
  }

  settle(place: number, answer: Renewed): void {
    this.#answers[place] = answer;
    this.#left -= 1;
    if (this.#left === 0) this.#resolve(this.#answers);
  }
}

const unasked: Renewed = { outcome: "unknown" };

/** Entries of one slot and one ttl that are renewed by one call. */
class Run implements Taker {
  readonly #all: Renewals;
  readonly slot: number;
  readonly ttlMs: number;
  readonly keys: string[] = [];
  /** Where each of them is among all. */
  readonly places: number[] = [];
  /** What their queues begin with, as scripts/keep.lua takes it. */
  owned = "";

  constructor(all: Renewals, slot: number, ttlMs: number) {
    this.#all = all;
    this.slot = slot;
    this.ttlMs = ttlMs;
  }

  /** The answer lists those, counted from 1, that were not found alone in their queues. */
  take(answer: unknown): void {
    if (!Array.isArray(answer)) return this.fail(failureOf(`an answer that is no list: ${typeof answer}`));
    const others = new Set(answer.map((index) => Number(asText(index)) - 1));
    // A life that was longer already is never shortened: all have this much left, at least.
    const kept: Renewed = { outcome: "renewed", expiresInMs: this.ttlMs };
    this.places.forEach((place, index) => {
      if (others.has(index)) this.#all.ask(place);
      else this.#all.settle(place, kept);
    });
  }

  fail(cause: unknown): void {
    for (const place of this.places) this.#all.settle(place, { outcome: "unknown", cause });
  }

  /** Nothing is to be undone: an entry that may live longer than its owner believes does no harm. */
  undo(): void {}
}

/** One entry that is renewed by a call of its own. */
class Renewing implements Taker {
  readonly #all: Renewals;
  readonly #place: number;

  constructor(all: Renewals, place: number) {
    this.#all = all;
    this.#place = place;
  }

  take(answer: unknown): void {
    this.#all.settle(this.#place, renewedBy(Number(asText(answer))));
  }

  fail(cause: unknown): void {
    this.#all.settle(this.#place, { outcome: "unknown", cause });
  }

  /** As for a run. */
  undo(): void {}
}

function renewedBy(leftMs: number): Renewed {
  if (leftMs > 0) return { outcome: "renewed", expiresInMs: leftMs };
  return leftMs < 0 ? { outcome: "gone", evicted: true } : { outcome: "gone" };
}
