/** What processes tell each other, as one line of ASCII each; who is told is decided in succession.ts. */
import type { Standing } from "./statements.ts";
import type { Fresh } from "./succession.ts";

/** The seq says who is told: a file gives each only once, in whatever queue. */
interface Turn<Seen> {
  readonly kind: "turn";
  readonly seq: string;
  readonly fresh: Seen | null;
}

/**
 * Nobody is ahead of an entry any more: what most messages say. Its text is seq, sinceUs and untilUs, and as it is sent:
 * a process that has just woken up takes longer to read JSON than to do the rest.
 */
export interface First {
  readonly kind: "first";
  readonly text: string;
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

/** That an entry is the first of its queue now. */
export function firstOf({ seq, sinceUs, untilUs }: Pick<Standing, "seq" | "sinceUs" | "untilUs">): First {
  return { kind: "first", text: `${seq} ${sinceUs} ${untilUs}` };
}

/** A message as a line: of ASCII, so that no character of it arrives in two parts. */
export function lineOf(message: Message): string {
  if (message.kind === "first") return message.text;
  const text = JSON.stringify(message, (_key, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  return text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The message of a line; null for one that this version does not know. */
export function messageOf(line: string): Message | null {
  if (!line.startsWith("{")) return { kind: "first", text: line };
  try {
    const message: unknown = JSON.parse(line);
    if (!isMessage(message)) return null;
    if (message.kind === "evicted") return message;
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

function isMessage(value: unknown): value is Turn<Fresh<Sent>> | Evicted {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    (value.kind === "turn" || value.kind === "evicted")
  );
}
