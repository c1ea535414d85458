/** Calls that travel together, who gets their answers, and what has to confirm them; sending is left to outbox.ts. */
import type { LockError } from "../../core/errors.ts";
import { calls } from "./calls.ts";
import { asText } from "./link.ts";

/** Who gets the answer of a call. */
export interface Taker {
  /** `listening` is what the hub said when it was sent. */
  take(answer: unknown, nowUs: number, listening: number): void;
  fail(error: LockError): void;
  /** Whether the replication policy applies to it; then `undo` is called for an answer that was not confirmed. */
  readonly undo?: () => void;
}

/** What has to confirm a write before it counts. */
export interface Confirmation {
  readonly replicas: number;
  readonly aof: number;
  readonly withinMs: number;
}

/** Calls that travel together. */
export class Batch {
  /** Of the first call: on a cluster, all calls of a batch are in its slot. */
  readonly key: string;
  readonly slot: number;
  /** By when it must have been answered, by our clock. */
  readonly dueAt: number;
  readonly keys: string[] = [];
  readonly args: string[] = [];
  readonly takers: Taker[] = [];
  /** Where the arguments of each call begin. */
  readonly starts: number[] = [];
  sentAt = 0;
  listening = 0;
  over = false;
  again = false;

  constructor(key: string, slot: number, dueAt: number) {
    this.key = key;
    this.slot = slot;
    this.dueAt = dueAt;
  }

  /** The append at this place alone, to be sent once more. */
  onlyAppend(place: number): Batch {
    const { append } = calls;
    const only = new Batch(this.key, this.slot, this.dueAt);
    const start = this.starts[place] ?? 0;
    const keysBefore = this.starts
      .slice(0, place)
      .reduce((sum, from) => sum + keysOfLetter(this.args[from]), 0);
    only.again = true;
    only.keys.push(...this.keys.slice(keysBefore, keysBefore + append.keys.length));
    only.starts.push(0);
    only.args.push(...this.args.slice(start, start + 1 + append.args.length));
    only.takers.push(...this.takers.slice(place, place + 1));
    return only;
  }

  fail(error: LockError): void {
    if (this.over) return;
    this.over = true;
    for (const taker of this.takers) taker.fail(error);
  }
}

function keysOfLetter(letter: string | undefined): number {
  return Object.values(calls).find((shape) => shape.letter === letter)?.keys.length ?? 0;
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
