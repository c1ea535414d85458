/** What the value of an entry's key says: text for people and for other clients. What stands in the key itself is left to layout.ts. */
import type { Entry, NewEntry, Owner } from "../../core/backend.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import type { Layout } from "./layout.ts";

/** The value of an entry's key, as JSON. */
interface Said {
  readonly id: string;
  readonly owner: Owner;
  readonly ttlMs: number;
  readonly weight: number;
  readonly permits?: number | undefined;
  readonly metadata?: string | undefined;
  /** When it was made, by the wall clock of its maker: for people. */
  readonly at: number;
  /** Set by whoever takes it out by force, right before that. */
  readonly evicted?: true;
}

/** How long an entry of another program is taken to live, in milliseconds: when to look again. */
const foreignLifeMs = 10_000;

/** Who wrote an entry without saying so: Go's concurrency package, etcdctl, the v3lock service. */
const unknownOwner: Owner = { client: "", host: "", pid: 0, label: "another program" };

/** The value for a new entry. */
export function textOf(entry: NewEntry, wallMs: number): string {
  const { id, owner, ttlMs, weight, permits, metadata } = entry;
  const said: Said = { id, owner, ttlMs, weight, permits, metadata, at: Math.floor(wallMs) };
  return JSON.stringify(said);
}

/** The value of an entry that is about to be evicted: says so, and nothing else than before. Null for a foreign one. */
export function evictedText(value: Uint8Array): string | null {
  const said = read(value);
  return said === null ? null : JSON.stringify({ ...said, evicted: true } satisfies Said);
}

/** Whether the last value of a key says that it was to be evicted. */
export function saysEvicted(value: Uint8Array | undefined): boolean {
  return value !== undefined && read(value)?.evicted === true;
}

/** Whether a key holds an entry: one of ours, or one of another program, which says nothing and has a lease. */
export function isEntry({ value, lease }: KeyValue): boolean {
  return value.length === 0 ? lease !== 0n : read(value) !== null;
}

/**
 * An entry as it is shown. `expiresInMs` is its whole ttl unless the caller knows better: it may have been renewed just
 * now. What cannot be read is an entry all the same, exclusive, as other programs treat it.
 */
export function entryOf(
  layout: Layout,
  queue: string,
  kv: KeyValue,
  wallMs: number,
  expiresInMs?: number,
): Entry {
  const { last, mode } = layout.entryOf(queue, Buffer.from(kv.key).toString());
  const said = read(kv.value);
  return {
    id: said?.id ?? last,
    mode,
    owner: said?.owner ?? unknownOwner,
    weight: said?.weight ?? 1,
    permits: said?.permits,
    seq: kv.createRevision,
    expiresInMs: expiresInMs ?? said?.ttlMs ?? foreignLifeMs,
    ageMs: said === null ? 0 : Math.max(0, wallMs - said.at),
    metadata: said?.metadata,
  };
}

function read(value: Uint8Array): Said | null {
  if (value.length === 0) return null;
  try {
    const said: unknown = JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.length).toString());
    return isSaid(said) ? said : null;
  } catch {
    return null;
  }
}

function isSaid(said: unknown): said is Said {
  if (typeof said !== "object" || said === null) return false;
  if (!("id" in said && "owner" in said && "weight" in said) || typeof said.id !== "string") return false;
  const { owner, weight } = said;
  if (typeof owner !== "object" || owner === null || !("client" in owner && "host" in owner)) return false;
  return typeof weight === "number" && weight > 0 && "ttlMs" in said && "at" in said;
}
