/** Calls that go to all nodes together, and who counts the answers; sending is left to node.ts. */
import type { LockError } from "../../core/errors.ts";
import { asText } from "../redis/link.ts";
import { calls, type CallName } from "./calls.ts";
import type { Debt } from "./debts.ts";
import { counterKey } from "./keys.ts";
import type { Short } from "./short.ts";

/** Who counts the answers of a call: each node is heard once. */
export interface Poll {
  answered(node: number, answer: string): void;
  failed(node: number, error: LockError): void;
  /** Whether a node that was not heard owes it: it is sent again when the node is back. */
  readonly owed?: Debt | undefined;
}

/** How many calls one script call carries at most. */
const batchSize = 64;

/** What a node says instead of the answers if all of them are "+". */
const allDone = "*";

/** Calls that travel together. */
export class Batch {
  /** By when it must have been answered, by our clock. */
  readonly dueAt: number;
  readonly keys: string[] = [counterKey];
  /** The letters of the calls, in their order. */
  letters = "";
  readonly args: string[] = [];
  readonly polls: Poll[] = [];
  /** Another form of the only call, if there is one. */
  short: Short | null = null;
  /** Called when all nodes have been heard or given up. */
  onOver: (() => void) | null = null;
  /** A bit for each node that has been heard, or given up. */
  #heard: number;
  #left: number;

  constructor(nodes: number, dueAt: number, only?: number) {
    this.dueAt = dueAt;
    this.#heard = only === undefined ? 0 : ~(1 << only);
    this.#left = only === undefined ? nodes : 1;
  }

  get isFull(): boolean {
    return this.polls.length >= batchSize;
  }

  /** Whether it only takes out what has been asked for again since: it must not be sent after that. */
  get isPast(): boolean {
    return this.polls.every(({ owed }) => owed?.isPast === true);
  }

  isHeard(node: number): boolean {
    return (this.#heard & (1 << node)) !== 0;
  }

  add(name: CallName, keys: readonly string[], args: readonly string[], poll: Poll, short?: Short): void {
    this.short = this.polls.length === 0 ? (short ?? null) : null;
    this.keys.push(...keys);
    this.letters += calls[name].letter;
    this.args.push(...args);
    this.polls.push(poll);
  }

  /** A node has answered all calls, in their order. */
  take(node: number, answers: readonly unknown[], failureOf: (text: string) => LockError): void {
    if (!this.#hear(node)) return;
    if (asText(answers[0]) === allDone) {
      for (const poll of this.polls) poll.answered(node, "+");
      return;
    }
    this.polls.forEach((poll, index) => {
      const answer = asText(answers[index]);
      if (answer.startsWith("!")) poll.failed(node, failureOf(answer.slice(1)));
      else poll.answered(node, answer);
    });
  }

  fail(node: number, error: LockError): void {
    if (!this.#hear(node)) return;
    for (const poll of this.polls) poll.failed(node, error);
  }

  #hear(node: number): boolean {
    if (this.isHeard(node)) return false;
    this.#heard |= 1 << node;
    this.#left -= 1;
    if (this.#left === 0) this.onOver?.();
    return true;
  }
}
