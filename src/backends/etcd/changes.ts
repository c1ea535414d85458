/**
 * Sends the changes of one tick as one transaction: one request and one proposal for all of them. Each is carried out or
 * not by comparisons of its own, as if it had come alone. What a change says is left to those who make it.
 */
import { type Calls, isRefused } from "./calls.ts";
import type { Init } from "./client/codec.ts";
import type { TxnRequest, TxnResponse } from "./client/messages/txn.ts";
import * as methods from "./client/methods.ts";

/** A change of one entry. */
export interface Change {
  /** For messages. */
  readonly what: string;
  /** The key that is written. */
  readonly key: string;
  /** The queue that the entry joins; null where it leaves. */
  readonly joins: string | null;
  readonly request: Init<TxnRequest>;
}

/** A change whose maker waits for the answer. */
interface Waiting extends Change {
  readonly resolve: (answer: TxnResponse) => void;
  readonly reject: (error: unknown) => void;
}

/** How many travel together at most: etcd takes 128 steps, and requests of 1.5 MiB, unless it is told otherwise. */
const mostTogether = 64;

/** The changes of one client. */
export class Changes {
  readonly #calls: Calls;
  #waiting: Waiting[] = [];
  readonly #flush = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const batch of batchesOf(waiting)) void this.#send(batch);
  };

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Resolves with the answer, as if the change had been sent alone. */
  send(change: Change): Promise<TxnResponse> {
    return new Promise((resolve, reject) => {
      // Runs when all that follows from what has just happened has been done.
      if (this.#waiting.length === 0) process.nextTick(this.#flush);
      this.#waiting.push({ ...change, resolve, reject });
    });
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const [first, ...others] = batch;
    if (first === undefined) return;
    if (others.length === 0) {
      await this.#calls.write(first.what, methods.transact, first.request).then(first.resolve, first.reject);
      return;
    }
    try {
      const success = batch.map(({ request: txn }) => ({ txn }));
      const what = others.every((other) => other.what === first.what) ? first.what : "joining and leaving";
      const { header, responses } = await this.#calls.write(what, methods.transact, { success });
      for (const [index, { resolve, reject }] of batch.entries()) {
        const answer = responses[index]?.txn;
        if (answer === undefined) reject(new RangeError("etcd has answered less than it was asked"));
        else resolve({ ...answer, header });
      }
    } catch (error) {
      // It may be because of one of them, and the others are not to suffer for it.
      if (isRefused(error)) await Promise.all(batch.map((each) => this.#send([each])));
      else for (const { reject } of batch) reject(error);
    }
  }
}

/**
 * Parts changes into what may travel together: entries that are put by one transaction have the same create revision, so
 * no two of them may join one queue; nor may a key be written twice.
 */
export function batchesOf<Each extends Change>(changes: readonly Each[]): readonly (readonly Each[])[] {
  if (changes.length === 1) return [changes];
  const [written, joined] = [new Map<string, number>(), new Map<string, number>()];
  const rounds: { leaving: Each[]; joining: Each[] }[] = [];
  for (const change of changes) {
    const { key, joins } = change;
    const turn = Math.max(written.get(key) ?? 0, joins === null ? 0 : (joined.get(joins) ?? 0));
    written.set(key, turn + 1);
    if (joins !== null) joined.set(joins, turn + 1);
    const round = (rounds[turn] ??= { leaving: [], joining: [] });
    (joins === null ? round.leaving : round.joining).push(change);
  }
  // Who joins sees who has left.
  return rounds.flatMap(({ leaving, joining }) => inParts([...leaving, ...joining], mostTogether));
}

/** A list in parts that have no more than so many each. */
export function inParts<Each>(all: readonly Each[], most: number): Each[][] {
  const parts: Each[][] = [];
  for (let from = 0; from < all.length; from += most) parts.push(all.slice(from, from + most));
  return parts;
}
