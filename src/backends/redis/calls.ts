/** The calls that scripts/calls.lua knows: the keys that each takes, and its letter and arguments as text. */
import type { QueueKeys } from "./keys.ts";

/** What a call takes, in order; test/house/redis-scripts.test.ts compares it with its Lua file. */
interface Shape {
  readonly letter: string;
  readonly keys: readonly (keyof QueueKeys)[];
  readonly args: readonly string[];
}

/** The calls, by the names of their Lua files. */
type CallName = "append" | "remove" | "bequeath" | "evict" | "keep" | "renew" | "prune" | "list";

/** Each call, by the name of its Lua file. */
export const calls: Readonly<Record<CallName, Shape>> = {
  append: {
    letter: "a",
    keys: ["queue", "entries", "order"],
    args: ["id", "ttlMs", "atOnce", "shape", "more"],
  },
  remove: { letter: "d", keys: ["queue", "entries", "order"], args: ["id", "seq"] },
  bequeath: { letter: "b", keys: ["queue", "entries", "order"], args: ["id", "seq", "heir"] },
  evict: { letter: "e", keys: ["queue", "entries", "order", "evicted"], args: ["id", "seq"] },
  keep: { letter: "k", keys: ["queue"], args: ["ttlMs", "count", "owned"] },
  renew: { letter: "r", keys: ["queue", "entries", "order", "evicted"], args: ["id", "seq", "ttlMs"] },
  prune: { letter: "p", keys: ["queue", "entries", "order"], args: [] },
  list: { letter: "l", keys: ["queue", "entries"], args: [] },
};

/** A call, ready to be sent. */
export interface Call {
  /** How long it keeps the server, compared with a renewal of a lock that nobody waits for. */
  readonly work: number;
  /** The queue's first so many keys, in the order of QueueKeys. */
  readonly keys: 1 | 2 | 3 | 4;
  /** Its letter and its arguments. */
  readonly text: string;
  /** For an append: all of it but the id, which is all that its text has. */
  readonly manner?: Manner;
}

/** How entries are appended: all of an append but the id. */
export class Manner {
  /** Its arguments after the id. */
  readonly text: string;
  readonly #ttlMs: string;
  readonly #atOnce: boolean;
  readonly #shape: string;
  readonly #more: string;
  /** What entries had in common that were appended alone, and what their records ended with: most often the same again. */
  #common = "";
  #rest = "";

  /** `entry` as packEntry gives it. */
  constructor(ttlMs: number, atOnce: boolean, entry: string) {
    this.text = `\0${ttlMs}\0${atOnce ? "1" : "0"}\0${entry}`;
    this.#ttlMs = String(ttlMs);
    this.#atOnce = atOnce;
    const shapeEnd = entry.indexOf("\0");
    this.#shape = shapeEnd < 0 ? entry : entry.slice(0, shapeEnd);
    this.#more = shapeEnd < 0 ? "" : entry.slice(shapeEnd);
  }

  /** The words of an append that travels alone, as scripts/alone.lua takes them. */
  alone(id: string, common: string, untilMs: number): readonly string[] {
    if (this.#common !== common) {
      this.#common = common;
      this.#rest = ` +${this.#ttlMs} ${this.#shape}${common}${this.#more}`;
    }
    return [`${untilMs}999${this.#atOnce ? "!" : ""}`, `${id}\0`, this.#rest, this.#ttlMs];
  }
}

/** Puts an entry at the tail. */
export function appendCall(id: string, manner: Manner): Call {
  return { work: 5, keys: 3, text: `j${id}`, manner };
}

/** An append in all its words: one that follows another of the same manner in a batch needs its id alone. */
export function wholeAppend(text: string, manner: string): string {
  return `${calls.append.letter}${text.slice(1)}${manner}`;
}

/** Takes an entry out, with that seq unless it is undefined. */
export function removeCall(id: string, seq: bigint | undefined): Call {
  return { work: 5, keys: 3, text: seq === undefined ? `d${id}\0` : `d${ownOf(id, seq)}` };
}

/** The same for one whose lock the heir has already. */
export function bequeathCall(id: string, seq: bigint, heir: string): Call {
  return { work: 5, keys: 3, text: `b${id}\0${seq}\0${heir}` };
}

/** The same for somebody else's. */
export function evictCall(id: string, seq: bigint | undefined): Call {
  return { work: 5, keys: 4, text: `e${id}\0${seq ?? ""}` };
}

/** What a queue begins with if this entry is alone in it. */
export function ownOf(id: string, seq: bigint): string {
  return `${id}\0${seq} `;
}

/** Extends the lives of entries that are alone in their queues, each of which gives one key; renewCall has to follow for the others. */
export function keepCall(ttlMs: number, count: number, owned: string): Call {
  return { work: count, keys: 1, text: `k${ttlMs}\0${count}\0${owned}` };
}

/** Extends the life of an entry. */
export function renewCall(id: string, seq: bigint, ttlMs: number): Call {
  return { work: 1, keys: 4, text: `r${id}\0${seq}\0${ttlMs}` };
}

/** Takes out what has expired at the front of a queue. */
export const pruneCall: Call = { work: 5, keys: 3, text: "p" };

/** Shows a queue. */
export const listCall: Call = { work: 5, keys: 2, text: "l" };
