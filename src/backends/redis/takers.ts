/** Who waits for the answer of a call: classes rather than functions, since there is one for each call. */
import type { NewEntry, Renewed, Snapshot } from "../../core/backend.ts";
import { ruleOf } from "../../core/grant.ts";
import type { Taker } from "./batch.ts";
import type { Hub } from "./hub.ts";
import type { PlacedKeys } from "./keys.ts";
import { asText } from "./link.ts";
import { readStanding } from "./records.ts";

/** Takes the answer to an append, and tells the hub whether its entry waits. */
export class Appending implements Taker {
  readonly #keys: PlacedKeys;
  readonly #entry: NewEntry;
  readonly #hub: Hub;
  readonly #takeBack: (keys: PlacedKeys, id: string) => void;
  readonly #resolve: (said: Snapshot | null) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    keys: PlacedKeys,
    entry: NewEntry,
    hub: Hub,
    takeBack: (keys: PlacedKeys, id: string) => void,
    resolve: (said: Snapshot | null) => void,
    reject: (error: unknown) => void,
  ) {
    this.#keys = keys;
    this.#entry = entry;
    this.#hub = hub;
    this.#takeBack = takeBack;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  take(answer: unknown, nowUs: number, listening: number): void {
    const entry = this.#entry;
    const said = readStanding(entry, answer, nowUs);
    if (said !== null && said.ahead.count > 0 && !ruleOf(entry).grants(entry, said.ahead)) {
      this.#hub.waits(this.#keys.slot, entry.id, said.self.seq, listening);
    }
    this.#hub.answered();
    this.#resolve(said);
  }

  fail(error: unknown): void {
    this.#hub.answered();
    this.#reject(error);
  }

  undo(): void {
    this.#takeBack(this.#keys, this.#entry.id);
  }
}

/** Takes the answers to many renewals, and resolves with all of them: one promise, since there may be thousands. */
export class Renewals {
  readonly #answers: Renewed[] = [];
  readonly #resolve: (answers: readonly Renewed[]) => void;
  readonly #askAgain: (place: number) => void;
  #left: number;

  /** `askAgain` is called for an entry that was taken to be alone, and is not. */
  constructor(
    count: number,
    resolve: (answers: readonly Renewed[]) => void,
    askAgain: (place: number) => void,
  ) {
    this.#left = count;
    this.#resolve = resolve;
    this.#askAgain = askAgain;
    if (count === 0) resolve([]);
  }

  /** Who takes the answer at a place. */
  taker(place: number): Taker {
    return new RenewalTaker(this, place);
  }

  took(place: number, answer: unknown): void {
    if (answer === null || answer === false) this.#askAgain(place);
    else this.settle(place, renewedBy(typeof answer === "number" ? answer : Number(asText(answer))));
  }

  settle(place: number, answer: Renewed): void {
    this.#answers[place] = answer;
    this.#left -= 1;
    if (this.#left === 0) this.#resolve(this.#answers);
  }
}

class RenewalTaker implements Taker {
  readonly #all: Renewals;
  readonly #place: number;

  constructor(all: Renewals, place: number) {
    this.#all = all;
    this.#place = place;
  }

  take(answer: unknown): void {
    this.#all.took(this.#place, answer);
  }

  fail(cause: unknown): void {
    this.#all.settle(this.#place, { outcome: "unknown", cause });
  }

  /** Nothing is to be undone: an entry that may live longer than its owner believes does no harm. */
  undo(): void {}
}

function renewedBy(leftMs: number): Renewed {
  if (leftMs > 0) return { outcome: "renewed", expiresInMs: leftMs };
  return leftMs < 0 ? { outcome: "gone", evicted: true } : { outcome: "gone" };
}

/** Takes the answer to a question that changes nothing, or that needs no confirmation. */
export class Asking<T> implements Taker {
  readonly #read: (answer: unknown, nowUs: number) => T;
  readonly #resolve: (answer: T) => void;
  readonly fail: (error: unknown) => void;

  constructor(
    read: (answer: unknown, nowUs: number) => T,
    resolve: (answer: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#read = read;
    this.#resolve = resolve;
    this.fail = reject;
  }

  take(answer: unknown, nowUs: number): void {
    this.#resolve(this.#read(answer, nowUs));
  }
}
