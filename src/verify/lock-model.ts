/**
 * A lock name as a state machine for the search: a queue of entries that are appended, granted by the rules of the
 * queue, removed, and expired once their holder no longer believes. Where the ops come from is left to lock-ops.ts.
 */
import type { Model } from "./linearize.ts";
import type { GrantKind } from "./trace.ts";

/** One request as the store would see it. */
export interface ModelEntry {
  readonly id: number;
  readonly kind: GrantKind;
  readonly weight: number;
  readonly permits: number;
  /** Its token; null where it is not known. */
  readonly token: bigint | null;
  /** Its place among the entries that surely were appended and whose tokens are known; null for the others. */
  readonly rank: number | null;
}

/** One step of a lock's life. */
export type LockOp =
  /** The entry joins the tail of the queue. */
  | { readonly what: "append"; readonly entry: ModelEntry }
  /** The entry is granted as it stands. */
  | { readonly what: "grant"; readonly entry: ModelEntry }
  /** The entry joins the tail and is granted at once. */
  | { readonly what: "take"; readonly entry: ModelEntry }
  /** The entry would not have been granted at the tail. */
  | { readonly what: "refuse"; readonly entry: ModelEntry }
  /** The entry leaves: it was released, or it expired. */
  | { readonly what: "remove"; readonly entry: ModelEntry }
  /** Somebody was shown the queue. */
  | { readonly what: "list"; readonly holders: readonly bigint[]; readonly waiters: readonly bigint[] };

/** A queue, first to last, and how many ranked entries were appended. */
export interface LockState {
  readonly queue: readonly ModelEntry[];
  readonly ranked: number;
}

/** The rules of a queue in arrival order. */
export const lockModel: Model<LockState, LockOp> = {
  initial: { queue: [], ranked: 0 },

  step(state, op) {
    const { queue } = state;
    switch (op.what) {
      case "append":
        return append(state, op.entry);
      case "grant": {
        const at = queue.indexOf(op.entry);
        return at >= 0 && isGranted(queue, at) ? state : null;
      }
      case "take": {
        const after = append(state, op.entry);
        return after !== null && isGranted(after.queue, queue.length) ? after : null;
      }
      case "refuse":
        return isGranted([...queue, op.entry], queue.length) ? null : state;
      case "remove":
        return queue.includes(op.entry)
          ? { queue: queue.filter((entry) => entry !== op.entry), ranked: state.ranked }
          : null;
      default:
        return shows(queue, op.holders, op.waiters) ? state : null;
    }
  },

  key({ queue, ranked }) {
    let text = `${ranked}`;
    for (const { id } of queue) text += `,${id}`;
    return text;
  },
};

/** Tokens grow along the queue, so the ranked entries come in order of rank, and none behind a larger token. */
function append({ queue, ranked }: LockState, entry: ModelEntry): LockState | null {
  if (entry.rank !== null && entry.rank !== ranked) return null;
  const { token } = entry;
  if (token !== null && queue.some((other) => other.token !== null && other.token >= token)) return null;
  return { queue: [...queue, entry], ranked: entry.rank === null ? ranked : ranked + 1 };
}

/** Exclusive: nobody ahead. Shared: only shared ahead. Counted: what is ahead leaves room. */
function isGranted(queue: readonly ModelEntry[], at: number): boolean {
  const entry = queue[at];
  if (entry === undefined) return false;
  if (entry.kind === "exclusive") return at === 0;
  let weight = entry.weight;
  for (const other of queue.slice(0, at)) {
    if (other.kind !== entry.kind) return false;
    weight += other.weight;
  }
  return entry.kind === "shared" || weight <= entry.permits;
}

/** Whether a listing fits a queue; an entry whose token is not known fits any. */
function shows(
  queue: readonly ModelEntry[],
  holders: readonly bigint[],
  waiters: readonly bigint[],
): boolean {
  if (queue.length !== holders.length + waiters.length) return false;
  let held = 0;
  let waiting = 0;
  for (const [at, { token }] of queue.entries()) {
    const shown = isGranted(queue, at) ? holders[held++] : waiters[waiting++];
    if (shown === undefined || (token !== null && token !== shown)) return false;
  }
  return true;
}
