/** Calls that travel together, who gets their answers, and what has to confirm them; sending is left to outbox.ts. */
import type { LockError } from "../../core/errors.ts";
import { type Call, calls, wholeAppend } from "./calls.ts";
import type { QueueKeys } from "./keys.ts";
import { asText } from "./link.ts";
import type { Phrase } from "./phrases.ts";

/** Who gets the answer of a call. */
export interface Taker {
  /** `listening` is what the hub said when it was sent. */
  take(answer: unknown, nowUs: number, listening: number): void;
  fail(error: LockError): void;
  /** Whether the replication policy applies to it; then `undo` is called for an answer that was not confirmed. */
  undo?(): void;
}

/** What has to confirm a write before it counts. */
export interface Confirmation {
  readonly replicas: number;
  readonly aof: number;
  readonly withinMs: number;
}

/** How many there were so far. */
let batches = 0;

/** As good as for ever: in milliseconds, the last moment that has as many digits as those of our days. */
const forEverMs = 9_999_999_999_999;

/** Calls that travel together. */
export class Batch {
  /** Of the first call: on a cluster, all calls of a batch are in its slot. */
  readonly key: string;
  readonly slot: number;
  /** By when it must have been answered, by our clock. */
  readonly dueAt: number;
  /** The words that it is sent in, if they were there before; then nothing is added to it. */
  readonly phrase: Phrase | null;
  readonly keys: string[] = [];
  /** The calls, as scripts/calls.lua takes them. */
  readonly texts: string[] = [];
  /** Where the keys of each of them begin. */
  readonly starts: number[] = [];
  readonly takers: Taker[] = [];
  /** Its place among all: what cannot be sent goes back to where it was. */
  serial: number = ++batches;
  /** What all entries that it appends have in common; null while it appends none. */
  common: string | null = null;
  /** The manner of the last of them, as text. */
  #manner: string | undefined = undefined;
  /** The call, while it is the only one. */
  #only: Call | null = null;
  work = 0;
  sentAt = 0;
  listening = 0;
  over = false;
  /** When it may be tried again, and what it was refused with before. */
  notBefore = 0;
  refusal: LockError | null = null;
  again = false;

  constructor(key: string, slot: number, dueAt: number, phrase: Phrase | null = null) {
    this.phrase = phrase;
    this.key = key;
    this.slot = slot;
    this.dueAt = dueAt;
  }

  /** Whether an append with this in common may travel with the others. */
  takes(common: string | null): boolean {
    return common === null || this.common === null || this.common === common;
  }

  add({ queue, entries, order, evicted }: QueueKeys, call: Call, taker: Taker): void {
    const { work, keys, text, manner } = call;
    this.starts.push(this.keys.length);
    this.work += work;
    this.keys.push(queue);
    if (keys > 1) this.keys.push(entries);
    if (keys > 2) this.keys.push(order);
    if (keys > 3) this.keys.push(evicted);
    const isLike = manner === undefined || manner.text === this.#manner;
    this.texts.push(isLike ? text : wholeAppend(text, manner.text));
    if (manner !== undefined) this.#manner = manner.text;
    this.#only = this.takers.length === 0 ? call : null;
    this.takers.push(taker);
  }

  /** Adds a call about many queues, of which each gives one key. */
  addRun(queues: readonly string[], { work, text }: Call, taker: Taker): void {
    this.starts.push(this.keys.length);
    this.work += work;
    this.keys.push(...queues);
    this.texts.push(text);
    this.takers.push(taker);
  }

  /**
   * What the script takes after its keys. An append that comes later than a moment of the server's clock is refused; null if that clock is not
   * known.
   */
  words(untilMs: number | null): readonly string[] {
    const { common, texts } = this;
    if (common === null) return texts;
    const [only, until] = [this.#only, untilMs ?? forEverMs];
    if (only?.manner !== undefined) return only.manner.alone(only.text.slice(1), common, until);
    // Lists alone are joined several times as fast as lists and words.
    return [`u${until}`, common].concat(texts);
  }

  /** The append at this place alone, to be sent once more. */
  onlyAppend(place: number): Batch {
    const only = new Batch(this.key, this.slot, this.dueAt);
    only.again = true;
    only.serial = this.serial;
    only.common = this.common;
    only.keys.push(...this.keys.slice(this.starts[place], this.starts[place + 1]));
    only.texts.push(this.#wholeAt(place));
    only.takers.push(...this.takers.slice(place, place + 1));
    return only;
  }

  /** The text of an append as it is where none comes before it. */
  #wholeAt(place: number): string {
    const text = this.texts[place] ?? "";
    const before =
      this.texts.slice(0, place + 1).findLast((each) => each.startsWith(calls.append.letter)) ?? text;
    return text === before ? text : wholeAppend(text, before.slice(before.indexOf("\0")));
  }

  fail(error: LockError): void {
    if (this.over) return;
    this.over = true;
    for (const taker of this.takers) taker.fail(error);
  }
}

/** What a confirmation lacks; null if nothing. */
export function lackOf(answer: unknown, { replicas, aof }: Confirmation): string | null {
  if (!Array.isArray(answer)) {
    const seen = Number(asText(answer));
    return seen >= replicas ? null : `${seen} of ${replicas} replicas confirmed it`;
  }
  const [local, remote]: unknown[] = answer;
  if (Number(asText(local)) >= aof && Number(asText(remote)) >= replicas) return null;
  return `${asText(local)} of ${aof} local and ${asText(remote)} of ${replicas} replicas have it on disk`;
}
