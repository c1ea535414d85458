/** Values of keys as entries: what a node stores for a lock, and what can be read from it; pure. */
import type { Entry, NewEntry, Owner } from "../../core/backend.ts";
import { asText } from "../redis/link.ts";

/** What a value says. */
export interface Held {
  readonly id: string;
  /** The token, or 0 if it has none yet; for somebody else's value 0, too. */
  readonly seq: bigint;
  readonly owner: Owner;
  readonly sinceMs: number | null;
  readonly metadata: string | undefined;
}

/** Somebody who follows the usual recipe with another library. */
const nobody: Owner = { client: "", host: "an unknown host", pid: 0 };

/** What is the same in all values of an owner: the JSON of a list around the moment. */
const frames = new WeakMap<Owner, readonly [string, string]>();

function frameOf(owner: Owner): readonly [string, string] {
  const { client, host, pid, label } = owner;
  const head = JSON.stringify([client, host, pid]);
  const frame = [`${head.slice(0, -1)},`, label === undefined ? "]" : `,${JSON.stringify(label)}]`] as const;
  frames.set(owner, frame);
  return frame;
}

/** What a value carries for people after its id and its number: the owner and the moment as JSON, then the metadata. */
export function packRest({ owner, metadata }: NewEntry, sinceMs: number): string {
  const [head, tail] = frames.get(owner) ?? frameOf(owner);
  const text = head + Math.round(sinceMs) + tail;
  return metadata === undefined ? text : `${text}\0${metadata}`;
}

/** The value of an entry that has a number. */
export function valueOf(id: string, seq: bigint | string, rest: string): string {
  return `${id}\0t${seq}\0${rest}`;
}

/** Reads a value. One that is not of our form is the id of an owner of whom nothing else is known. */
function readValue(value: string): Held {
  const match = /^([^\0]*)\0([ct])(\d+)\0([^\0]*)(\0)?/.exec(value);
  if (match === null) return { id: value, seq: 0n, owner: nobody, sinceMs: null, metadata: undefined };
  const [all, id = "", kind, number = "0", head = "", more] = match;
  return {
    id,
    seq: kind === "t" ? BigInt(number) : 0n,
    ...readHead(head),
    metadata: more === undefined ? undefined : value.slice(all.length),
  };
}

function readHead(head: string): { owner: Owner; sinceMs: number | null } {
  try {
    const parts: unknown = JSON.parse(head);
    if (!Array.isArray(parts)) return { owner: nobody, sinceMs: null };
    const [client, host, pid, sinceMs, label]: unknown[] = parts;
    const owner = { client: asText(client), host: asText(host), pid: Number(pid) };
    return {
      owner: label === undefined ? owner : { ...owner, label: asText(label) },
      sinceMs: typeof sinceMs === "number" ? sinceMs : null,
    };
  } catch {
    return { owner: nobody, sinceMs: null };
  }
}

/** An entry as the seam shows it. */
export function entryOf(held: Held, expiresInMs: number, nowMs: number): Entry {
  const { id, seq, owner, sinceMs, metadata } = held;
  return {
    id,
    owner,
    mode: "write",
    weight: 1,
    seq,
    expiresInMs,
    ageMs: sinceMs === null ? 0 : Math.max(0, nowMs - sinceMs),
    metadata,
  };
}

/** An entry of our own, as it is asked for. */
export function ownEntry(asked: NewEntry, seq: bigint, expiresInMs: number): Entry {
  const { id, owner, mode, weight, metadata } = asked;
  return { id, owner, mode, weight, seq, expiresInMs, ageMs: 0, metadata };
}

/** What a node said of a value: the milliseconds that are left and the value; null if there is none. */
export function readLook(answer: string): { readonly leftMs: number; readonly held: Held } | null {
  const space = answer.indexOf(" ");
  if (space < 0) return null;
  return { leftMs: leftMs(answer.slice(0, space)), held: readValue(answer.slice(space + 1)) };
}

/** What PTTL says is left: a key that does not expire is there for ever, one that has just expired is not; never rounded up. */
export function leftMs(pttl: string): number {
  const ms = Number(pttl);
  return ms === -1 ? Number.POSITIVE_INFINITY : Math.max(0, ms - 1);
}
