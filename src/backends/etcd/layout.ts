/**
 * Which keys stand for which queues and entries. A queue is a prefix that ends with "/", as a lock of Go's concurrency
 * package and of etcdctl is; what is below it are its entries, whoever wrote them, in the order of their creation.
 */
import type { EntryMode } from "../../core/backend.ts";
import { invalid } from "../../core/errors.ts";

/** How the name of a lock becomes part of a key; see EtcdOptions. */
export type NameStyle = "escaped" | "plain";

/** A style of names that there is. */
export function checkStyle(style: string): NameStyle {
  if (style !== "plain" && style !== "escaped") throw invalid('etcd: names must be "escaped" or "plain"');
  return style;
}

/** An interval of keys: from the first up to, and without, the end. */
export interface KeyRange {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
}

/** What the last part of a reader's key starts with. Neither our ids nor Go's do; it sorts behind both. */
const readerMark = "~r.";
const firstReader = "~";

/**
 * How many keys the entries of one client share in a queue, and if more stand there at once: etcd keeps every key that was
 * ever written until it is compacted, and a read below a prefix passes by all of them.
 */
const shares = [64, 4_096];

/** What is worked out once for each queue. */
interface Place {
  readonly prefix: string;
  readonly entries: KeyRange;
  readonly writers: KeyRange;
}

/** How many queues are remembered: those that are used again and again. */
const mostPlaces = 1_000;

/** The keys below one prefix. */
export class Layout {
  readonly #root: string;
  readonly #escaped: boolean;
  readonly #places = new Map<string, Place>();

  constructor(root: string, style: NameStyle) {
    this.#root = root;
    this.#escaped = style === "escaped";
  }

  /** What all keys of a queue start with. */
  prefix(queue: string): string {
    return this.#placeOf(queue).prefix;
  }

  /** The keys that an entry may have: the first that is not taken by another one of the same client; nobody takes the last. */
  keys(queue: string, id: string, mode: EntryMode): readonly string[] {
    const start = this.prefix(queue) + (mode === "read" ? readerMark : "");
    const own = start + escapeId(id);
    // Ids end with a number that counts up; from a thousand on, "1-0" stands for it.
    const [, by, thousands = "0", rest] = /^(.*)\.(?:(\d+)-)?(\d+)$/s.exec(id) ?? [];
    const number = Number(thousands) * 1_000 + Number(rest);
    if (by === undefined || !Number.isSafeInteger(number)) return [own];
    const client = start + escapeId(by);
    return [...shares.map((share) => `${client}:${share}:${number % share}`), own];
  }

  /** All entries of a queue. */
  entries(queue: string): KeyRange {
    return this.#placeOf(queue).entries;
  }

  /** The entries of a queue that are no readers. */
  writers(queue: string): KeyRange {
    return this.#placeOf(queue).writers;
  }

  #placeOf(queue: string): Place {
    let place = this.#places.get(queue);
    if (place === undefined) {
      if (this.#places.size >= mostPlaces) this.#places.clear();
      place = placeAt(`${this.#root}${this.#escaped ? escape(queue) : queue}/`);
      this.#places.set(queue, place);
    }
    return place;
  }

  /** The entries of all queues whose names start so. */
  queues(start: string): KeyRange {
    return behind(Buffer.from(this.#root + (this.#escaped ? escape(start) : start)));
  }

  /** The last part of a key below a queue's prefix, and the mode that it stands for. */
  entryOf(queue: string, key: string): { readonly last: string; readonly mode: EntryMode } {
    const last = key.slice(this.prefix(queue).length);
    return { last, mode: last.startsWith(readerMark) ? "read" : "write" };
  }

  /** The queue that an entry's key belongs to; null for a key that stands for no entry. */
  queueOf(key: string): string | null {
    const end = key.lastIndexOf("/");
    if (end <= this.#root.length || !key.startsWith(this.#root)) return null;
    const name = key.slice(this.#root.length, end);
    return this.#escaped ? unescape(name) : name;
  }
}

function placeAt(prefix: string): Place {
  const key = Buffer.from(prefix);
  return {
    prefix,
    // "0" follows "/".
    entries: { key, rangeEnd: Buffer.from(`${prefix.slice(0, -1)}0`) },
    writers: { key, rangeEnd: Buffer.from(prefix + firstReader) },
  };
}

/** All keys that start with these bytes. */
function behind(start: Buffer): KeyRange {
  const rangeEnd = Buffer.from(start);
  const last = rangeEnd.findLastIndex((byte) => byte < 0xff);
  // A range that ends with a zero byte has no end.
  if (last < 0) return { key: start.length > 0 ? start : Buffer.from([0]), rangeEnd: Buffer.from([0]) };
  rangeEnd[last] = (rangeEnd[last] ?? 0) + 1;
  return { key: start, rangeEnd: rangeEnd.subarray(0, last + 1) };
}

function escape(name: string): string {
  return /[%/]/.test(name) ? name.replaceAll("%", "%25").replaceAll("/", "%2F") : name;
}

function escapeId(id: string): string {
  return /[%/~]/.test(id) ? escape(id).replaceAll("~", "%7E") : id;
}

function unescape(text: string): string {
  if (!text.includes("%")) return text;
  return text.replaceAll("%2F", "/").replaceAll("%25", "%");
}
