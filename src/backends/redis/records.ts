/** Entries as text: what a client sends, what a record of the store says, and what is ahead; pure. */
import type { Ahead, Entry, NewEntry, Owner, Snapshot } from "../../core/backend.ts";
import { nothingAhead } from "../../core/grant.ts";
import { asText } from "./link.ts";

/** The whole milliseconds that a ttl has. */
export function wholeMs(ttlMs: number): number {
  return Math.max(1, Math.floor(ttlMs));
}

/** An entry as scripts/append.lua takes it: its shape "<mode>,<weight>,<permits>,", and a NUL and its metadata if it has any. */
export function packEntry({ mode, weight, permits, metadata }: NewEntry): string {
  const shape = `${mode === "read" ? "r" : "w"},${weight},${permits ?? ""},`;
  return metadata === undefined ? shape : `${shape}\0${metadata}`;
}

/** The number that a text of digits is; null if it is none, or not below 2^53. What the runtime has for that takes ten times as long. */
export function numberIn(text: string): number | null {
  let number = text === "" ? null : 0;
  for (let place = 0; place < text.length && number !== null; place++) {
    const digit = text.charCodeAt(place) - 48;
    number = digit >= 0 && digit <= 9 ? number * 10 + digit : null;
  }
  return Number.isSafeInteger(number) ? number : null;
}

/** An owner as JSON, which has no NUL. */
export function packOwner({ client, host, pid, label }: Owner): string {
  return JSON.stringify(label === undefined ? [client, host, pid] : [client, host, pid, label]);
}

/** Owners that were read lately: a queue shows the same few again and again, and many may wait. */
const owners = new Map<string, Owner>();
const mostOwners = 1_000;

function unpackOwner(text: string): Owner {
  const known = owners.get(text);
  if (known !== undefined) return known;
  const [client, host, pid, label]: unknown[] = Object.values(JSON.parse(text));
  const named = { client: asText(client), host: asText(host), pid: Number(pid) };
  const owner = label === undefined ? named : { ...named, label: asText(label) };
  if (owners.size >= mostOwners) owners.clear();
  owners.set(text, owner);
  return owner;
}

/** The entry that a record of the store stands for, at a moment of the store's clock. */
export function readRecord(id: string, record: string, nowUs: number): Entry {
  const headEnd = record.indexOf("\0");
  const ownerEnd = record.indexOf("\0", headEnd + 1);
  const [seq = "", expiry = "", shape = ""] = record.slice(0, headEnd).split(" ", 3);
  const [mode, weight, permits] = shape.split(",", 3);
  return {
    id,
    owner: unpackOwner(record.slice(headEnd + 1, ownerEnd < 0 ? undefined : ownerEnd)),
    mode: mode === "r" ? "read" : "write",
    weight: Number(weight),
    permits: permits === "" ? undefined : Number(permits),
    seq: BigInt(seq),
    expiresInMs: leftMs(Number(expiry), nowUs),
    ageMs: ageOf(Number(seq), nowUs),
    metadata: ownerEnd < 0 ? undefined : record.slice(ownerEnd + 1),
  };
}

/** The live entries that scripts/list.lua showed, in their order. */
export function readList(answer: unknown, nowUs: number): readonly Entry[] {
  const fields: readonly unknown[] = Array.isArray(answer) ? answer : [];
  const entries: Entry[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const entry = readRecord(asText(fields[index]), asText(fields[index + 1]), nowUs);
    if (entry.expiresInMs > 0) entries.push(entry);
  }
  return entries.toSorted((a, b) => (a.seq < b.seq ? -1 : 1));
}

function leftMs(expiryMs: number, nowUs: number): number {
  return Math.max(0, expiryMs - Math.ceil(nowUs / 1000));
}

/** What scripts/append.lua answered; null if it refused. */
export function readStanding(asked: NewEntry, answer: unknown, nowUs: number): Snapshot | null {
  if (answer === null || answer === false) return null;
  if (!Array.isArray(answer)) {
    // A number is read as such: it is below 2^53.
    const seq = typeof answer === "number" ? answer : asText(answer);
    return { self: selfOf(asked, seq, wholeMs(asked.ttlMs), 0), ahead: nothingAhead };
  }
  const [seq, expiry, count, weight, nearestId, nearest, writerId, writer]: unknown[] = answer;
  return {
    self: selfOf(
      asked,
      asText(seq),
      leftMs(Number(asText(expiry)), nowUs),
      ageOf(Number(asText(seq)), nowUs),
    ),
    ahead: readAhead([count, weight, nearestId, nearest, writerId, writer], nowUs),
  };
}

/** The seq is the clock when the entry came, or a little more. */
function ageOf(seq: number, nowUs: number): number {
  return Math.max(0, (nowUs - seq) / 1000);
}

function selfOf(asked: NewEntry, seq: string | number, expiresInMs: number, ageMs: number): Entry {
  const { id, owner, mode, weight, permits, metadata } = asked;
  return { id, owner, mode, weight, permits, seq: BigInt(seq), expiresInMs, ageMs, metadata };
}

function readAhead(parts: readonly unknown[], nowUs: number): Ahead {
  const [count, weight, nearestId, nearest, writerId, writer] = parts.map(asText);
  if (count === "0" || nearestId === undefined || nearestId === "") return nothingAhead;
  const nearestEntry = readRecord(nearestId, nearest ?? "", nowUs);
  return {
    count: Number(count),
    weight: Number(weight),
    nearest: nearestEntry,
    nearestWriter: writerOf(nearestEntry, writerId ?? "", writer ?? "", nowUs),
  };
}

function writerOf(nearest: Entry, id: string, record: string, nowUs: number): Entry | null {
  if (id === "") return null;
  if (id !== "=") return readRecord(id, record, nowUs);
  return nearest.mode === "write" ? nearest : null;
}

/** What a wake-up says: whose turn it is, and what is ahead of it. */
export interface Wake {
  readonly id: string;
  readonly seq: bigint;
  readonly ahead: Ahead;
}

/** A message on the channel of a client: a wake-up, or word of an eviction. */
export type Message = { readonly wake: Wake } | { readonly evicted: { id: string; key: string } };

/** Reads a message of scripts/queue.lua or scripts/evict.lua; null if it is none. */
export function readMessage(message: string): Message | null {
  const idEnd = message.indexOf("\0");
  if (idEnd < 0) return null;
  const id = message.slice(0, idEnd);
  const rest = message.slice(idEnd + 1);
  if (id === "") return readEviction(rest);
  const seqEnd = rest.indexOf("\0");
  const seq = numberIn(seqEnd < 0 ? rest : rest.slice(0, seqEnd));
  if (seq === null) return null;
  const ahead = seqEnd < 0 ? nothingAhead : readMovedUp(rest.slice(seqEnd + 1));
  return { wake: { id, seq: BigInt(seq), ahead } };
}

function readEviction(text: string): Message | null {
  const idEnd = text.indexOf("\0");
  return idEnd < 0 ? null : { evicted: { id: text.slice(0, idEnd), key: text.slice(idEnd + 1) } };
}

/** What is ahead of an entry that cannot hold yet. */
function readMovedUp(text: string): Ahead {
  const [nowMs, count, weight, nearestId, ...nearest] = text.split("\0");
  return readAhead([count, weight, nearestId, nearest.join("\0"), "=", ""], Number(nowMs) * 1000);
}
