/** How queues travel between a client and the routines of a SQL database, as JSON; sending it is left to lane.ts. */
import type { Ahead, Entry, NewEntry, Owner, Snapshot } from "../core/backend.ts";
import { nothingAhead } from "../core/grant.ts";

/** The routines that are the calls of a SQL backend; each takes and gives one JSON array. */
export type Verb =
  | "append"
  | "flush"
  | "remove"
  | "renew"
  | "look"
  | "list"
  | "queues"
  | "sweep"
  | "evictions";

/** An entry as `shown` gives it: id, writer, weight, permits, seq, µs left, µs of age, about. */
export type ShownEntry = readonly [
  id: string,
  writer: boolean | number,
  weight: number,
  permits: number | null,
  seq: string,
  leftUs: number,
  ageUs: number,
  about: string,
];

/**
 * Where an entry stands, as `place_of` gives it; `true` for the writer means that it is the nearest. `unsettled`: it was
 * appended but may be undone by a crash until `flush` has been called.
 */
export type Place = readonly [
  seq: string,
  leftUs: number,
  ageUs: number,
  count: number,
  weight: number,
  nearest: ShownEntry | null,
  writer: ShownEntry | true | null,
  firstSeq: string | null,
  unsettled?: boolean,
];

/** What an append asks. */
export function appendRequest(queue: string, entry: NewEntry, channel: string, again: boolean): object {
  const { id, mode, weight, permits, ttlMs, onlyIfGranted } = entry;
  return {
    queue,
    id,
    writer: mode === "write",
    weight,
    permits: permits ?? null,
    ttl: microseconds(ttlMs),
    demand: onlyIfGranted === true,
    channel,
    about: aboutOf(entry),
    again,
  };
}

/** Milliseconds as whole microseconds, never more than they were. */
export function microseconds(ms: number): number {
  return Math.floor(ms * 1000);
}

/** What only people read of an entry, as one text that any database keeps: JSON has no bare NUL. */
function aboutOf({
  owner: { client, host, pid, label },
  metadata,
}: Pick<NewEntry, "owner" | "metadata">): string {
  return JSON.stringify({ client, host, pid, label, metadata });
}

/** Whether a parsed answer is a place. */
export function isPlace(value: unknown): value is Place {
  return Array.isArray(value) && value.length >= 8 && typeof value[0] === "string";
}

/** An entry that a database has shown. */
export function entryOf(shown: ShownEntry): Entry {
  const [id, writer, weight, permits, seq, leftUs, ageUs, about] = shown;
  const { metadata, ...owner } = readAbout(about);
  return {
    id,
    owner,
    mode: writer ? "write" : "read",
    weight,
    permits: permits ?? undefined,
    seq: BigInt(seq),
    expiresInMs: Math.max(0, leftUs / 1000),
    ageMs: Math.max(0, ageUs / 1000),
    metadata,
  };
}

/** A place as a snapshot of an entry of which all else is known. */
export function snapshotOf(self: Omit<Entry, "seq" | "expiresInMs" | "ageMs">, place: Place): Snapshot {
  const [seq, leftUs, ageUs] = place;
  const { id, owner, mode, weight, permits, metadata } = self;
  const life = {
    seq: BigInt(seq),
    expiresInMs: Math.max(0, leftUs / 1000),
    ageMs: Math.max(0, ageUs / 1000),
  };
  return { self: { id, owner, mode, weight, permits, metadata, ...life }, ahead: aheadOf(place) };
}

function aheadOf([, , , count, weight, shownNearest, shownWriter]: Place): Ahead {
  if (count === 0) return nothingAhead;
  if (shownNearest === null) throw new Error("a place without the nearest of those ahead");
  const nearest = entryOf(shownNearest);
  const nearestWriter = shownWriter === true ? nearest : shownWriter === null ? null : entryOf(shownWriter);
  return { count, weight, nearest, nearestWriter };
}

function readAbout(text: string): Owner & { readonly metadata?: string | undefined } {
  const about: unknown = JSON.parse(text);
  const field = (key: string): unknown => Reflect.get(Object(about), key);
  const textOf = (key: string): string | undefined => {
    const value = field(key);
    return typeof value === "string" ? value : undefined;
  };
  return {
    client: textOf("client") ?? "",
    host: textOf("host") ?? "",
    pid: Number(field("pid")),
    label: textOf("label"),
    metadata: textOf("metadata"),
  };
}
