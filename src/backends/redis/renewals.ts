/**
 * Many renewals as few calls: entries that are taken to be alone in their queues travel in runs, of which the answer names only
 * those that are not; these are asked for one by one. How calls travel is left to outbox.ts.
 */
import type { Renewal, Renewed } from "../../core/backend.ts";
import type { Taker } from "./batch.ts";
import { renewCall } from "./calls.ts";
import { failureOf } from "./failures.ts";
import type { KeyNames } from "./keys.ts";
import { asText } from "./link.ts";
import type { Outbox } from "./outbox.ts";
import { type Phrases, runOf } from "./phrases.ts";
import { wholeMs } from "./records.ts";

/** How many entries a run has at most: nobody else waits for longer than a millisecond or so. */
const longestRun = 500;

/** The places of all in a run that is as long as can be. */
const allPlaces: readonly number[] = Array.from({ length: longestRun }, (_, place) => place);

/** From how many on a run travels by itself, in words that are kept; shorter ones travel with the other calls of their tick. */
const keptFrom = 64;

/** The renewals of one call of the seam. */
export class Renewals {
  readonly #renewals: readonly Renewal[];
  readonly #outbox: Outbox;
  readonly #keys: KeyNames;
  readonly #phrases: Phrases;
  readonly #resolve: (answers: readonly Renewed[]) => void;
  readonly #answers: Renewed[];
  #left: number;
  /** The runs that entries may still join, by slot. */
  readonly #runs = new Map<number, Run>();

  constructor(
    renewals: readonly Renewal[],
    outbox: Outbox,
    keys: KeyNames,
    phrases: Phrases,
    resolve: (answers: readonly Renewed[]) => void,
  ) {
    this.#renewals = renewals;
    this.#outbox = outbox;
    this.#keys = keys;
    this.#phrases = phrases;
    this.#resolve = resolve;
    this.#answers = renewals.map(() => unasked);
    this.#left = renewals.length;
  }

  /** Sends all of them; those that are known to wait behind others, if any does, one by one. */
  send(isWaiting: ((id: string) => boolean) | null): void {
    if (isWaiting === null && this.#sendAgain()) return;
    this.#renewals.forEach((renewal, place) => {
      if (isWaiting?.(renewal.id)) this.ask(place);
      else this.#join(renewal, place);
    });
    for (const run of this.#runs.values()) this.#sendRun(run);
    if (this.#left === 0) this.#resolve(this.#answers);
  }

  /** The same company as the last time, as for most who hold many locks: no need to look at each. */
  #sendAgain(): boolean {
    const known = this.#phrases.known(this.#renewals);
    if (known === null) return false;
    const { slot, ttlMs } = known;
    const places = allPlaces.slice(0, this.#renewals.length);
    this.#outbox.addPhrase(known, new Run(this, slot, ttlMs, places));
    return true;
  }

  #join(renewal: Renewal, place: number): void {
    const slot = this.#keys.slotOf(renewal.queue);
    const ttlMs = wholeMs(renewal.ttlMs);
    let run = this.#runs.get(slot);
    if (run === undefined || run.ttlMs !== ttlMs || run.places.length === longestRun) {
      if (run !== undefined) this.#sendRun(run);
      run = new Run(this, slot, ttlMs);
      this.#runs.set(slot, run);
    }
    run.renewals.push(renewal);
    run.places.push(place);
  }

  #sendRun(run: Run): void {
    const { slot, renewals, ttlMs } = run;
    const [first] = renewals;
    if (first === undefined) return;
    if (renewals.length >= keptFrom) return this.#outbox.addPhrase(this.#phrases.of(first, renewals), run);
    const { keys, call } = runOf(this.#keys, renewals, ttlMs);
    this.#outbox.addRun(slot, keys, call, run);
  }

  /** Asks for one alone. */
  ask(place: number): void {
    const renewal = this.#renewals[place];
    if (renewal === undefined) return;
    const { queue, id, seq, ttlMs } = renewal;
    const taker = new Renewing(this, place);
    this.#outbox.add(this.#keys.of(queue), renewCall(id, seq, wholeMs(ttlMs)), taker);
  }

  /** All at these places got the same answer. */
  settleAll(places: readonly number[], answer: Renewed): void {
    for (const place of places) this.#answers[place] = answer;
    this.#left -= places.length;
    if (this.#left === 0) this.#resolve(this.#answers);
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
  /** Those that have joined; none if their words are known already. */
  readonly renewals: Renewal[] = [];
  /** Where each of them is among all. */
  readonly places: number[];

  constructor(all: Renewals, slot: number, ttlMs: number, places: number[] = []) {
    this.#all = all;
    this.slot = slot;
    this.ttlMs = ttlMs;
    this.places = places;
  }

  /** The answer lists those, counted from 1, that were not found alone in their queues. */
  take(answer: unknown): void {
    if (!Array.isArray(answer)) return this.fail(failureOf(`an answer that is no list: ${typeof answer}`));
    // A life that was longer already is never shortened: all have this much left, at least.
    const kept: Renewed = { outcome: "renewed", expiresInMs: this.ttlMs };
    if (answer.length === 0) return this.#all.settleAll(this.places, kept);
    const others = new Set(answer.map((index) => Number(asText(index)) - 1));
    this.places.forEach((place, index) => {
      if (others.has(index)) this.#all.ask(place);
      else this.#all.settle(place, kept);
    });
  }

  fail(cause: unknown): void {
    this.#all.settleAll(this.places, { outcome: "unknown", cause });
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
