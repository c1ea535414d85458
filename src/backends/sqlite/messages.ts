/** What processes tell each other, as one line of text each; who is told is decided in succession.ts. */
import type { Standing } from "./statements.ts";
import type { Fresh } from "./succession.ts";

interface Turn<Seen> {
  readonly kind: "turn";
  readonly queue: string;
  readonly id: string;
  readonly fresh: Seen | null;
}

/** Nobody is ahead any more: what most messages say, and so it is short. */
export interface First<Seq = bigint> {
  readonly kind: "first";
  readonly queue: string;
  readonly id: string;
  readonly seq: Seq;
  readonly sinceUs: number;
  readonly untilUs: number;
}

interface Evicted {
  readonly kind: "evicted";
  readonly queue: string;
  readonly id: string;
  readonly slot: number;
}

/** It may be the turn of an entry of yours; or an entry of yours was evicted. */
export type Message = Turn<Fresh> | First | Evicted;

/** A seq is text on the way: JSON has no integers of 64 bits. */
type Sent = Omit<Standing, "seq"> & { readonly seq: string };

/** A message as a line. */
export function lineOf(message: Message): string {
  return JSON.stringify(message, (_key, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
}

/** The message of a line; null for one that this version does not know. */
export function messageOf(line: string): Message | null {
  try {
    const message: unknown = JSON.parse(line);
    if (!isMessage(message)) return null;
    if (message.kind === "evicted") return message;
    if (message.kind === "first") return { ...message, seq: BigInt(message.seq) };
    if (message.fresh === null) return { ...message, fresh: null };
    const { self, nearest, nearestWriter } = message.fresh;
    const fresh = {
      ...message.fresh,
      self: withSeq(self),
      nearest: nearest && withSeq(nearest),
      nearestWriter: nearestWriter && withSeq(nearestWriter),
    };
    return { ...message, fresh };
  } catch {
    return null;
  }
}

function withSeq(standing: Sent): Standing {
  return { ...standing, seq: BigInt(standing.seq) };
}

function isMessage(value: unknown): value is Turn<Fresh<Sent>> | First<string> | Evicted {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    (value.kind === "turn" || value.kind === "first" || value.kind === "evicted") &&
    "queue" in value &&
    typeof value.queue === "string" &&
    "id" in value &&
    typeof value.id === "string"
  );
}
