/** Who waits for the answer of a call: classes rather than functions, since there is one for each call. */
import type { NewEntry, Snapshot } from "../../core/backend.ts";
import { ruleOf } from "../../core/grant.ts";
import type { Taker } from "./batch.ts";
import { failureAt } from "./failures.ts";
import type { Hub } from "./hub.ts";
import type { PlacedKeys } from "./keys.ts";
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
    this.#reject(failureAt(this.#keys, error));
  }

  undo(): void {
    this.#takeBack(this.#keys, this.#entry.id);
  }
}

/** Takes the answer to a question that changes nothing, or that needs no confirmation. */
export class Asking<T> implements Taker {
  readonly #keys: PlacedKeys;
  readonly #read: (answer: unknown, nowUs: number) => T;
  readonly #resolve: (answer: T) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    keys: PlacedKeys,
    read: (answer: unknown, nowUs: number) => T,
    resolve: (answer: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#keys = keys;
    this.#read = read;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  take(answer: unknown, nowUs: number): void {
    this.#resolve(this.#read(answer, nowUs));
  }

  fail(error: unknown): void {
    this.#reject(failureAt(this.#keys, error));
  }
}
