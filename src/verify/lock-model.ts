/**
 * A lock name as a state machine for the search: a queue of entries that are appended, granted by the rules of the
 * queue and removed, or expire once their time is over. Where the ops come from is left to lock-ops.ts.
 */
import type { Model } from "./linearize.ts";
import type { GrantKind } from "./trace.ts";

/** One request that was granted, as the store would see it. */
export interface ModelEntry {
  readonly id: number;
  readonly kind: GrantKind;
  readonly weight: number;
  readonly permits: number;
  readonly token: bigint | null;
  /** Its place among the tokens that were given out; null where it has none. */
  readonly rank: number | null;
  /** From this moment on it may expire, unseen; Infinity where it surely did not. */
  readonly expires: number;
}

/** One step of a lock's life. */
export type LockOp =
  /** The entry joins the tail of the queue. */
  | { readonly what: "append"; readonly entry: ModelEntry }
  /** The entry is granted where it stands. */
  | { readonly what: "grant"; readonly entry: ModelEntry }
  /** The entry joins the tail and is granted at once. */
  | { readonly what: "take"; readonly entry: ModelEntry }
  /** The entry would not be granted at the tail. */
  | { readonly what: "refuse"; readonly entry: ModelEntry }
  /** The entry leaves. */
  | { readonly what: "remove"; readonly entry: ModelEntry }
  /** Somebody is shown the queue. */
  | {
      readonly what: "list";
      readonly holders: readonly ModelEntry[];
      readonly waiters: readonly ModelEntry[];
      /** Those waiters that may wait for an entry that is not in the model. */
      readonly behindStrangers: ReadonlySet<ModelEntry>;
    };

/** A queue, first to last, and how many entries with tokens were appended. */
export interface LockState {
  readonly queue: readonly ModelEntry[];
  readonly appended: number;
}

/** The rules of a queue in arrival order. Entries expire only when something that happened needs them gone. */
export const lockModel: Model<LockState, LockOp> = {
  initial: { queue: [], appended: 0 },

  step(state, op, horizon) {
    const { queue, appended } = state;
    switch (op.what) {
      case "append":
        return append(state, op.entry);
      case "grant":
        return queue.includes(op.entry) ? grant(state, op.entry, horizon) : [];
      case "take":
        return append(state, op.entry).flatMap((after) => grant(after, op.entry, horizon));
      case "refuse":
        return isGranted([...queue, op.entry], queue.length) ? [] : [state];
      case "remove":
        return queue.includes(op.entry) ? [{ queue: without(queue, op.entry), appended }] : [];
      default:
        return list(state, op, horizon);
    }
  },

  key({ queue, appended }) {
    let text = `${appended}`;
    for (const { id } of queue) text += `,${id}`;
    return text;
  },
};

/** Tokens grow along the queue, so entries that have them join in that order. */
function append({ queue, appended }: LockState, entry: ModelEntry): LockState[] {
  if (entry.rank !== null && entry.rank !== appended) return [];
  return [{ queue: [...queue, entry], appended: entry.rank === null ? appended : appended + 1 }];
}

/** All ways to have an entry granted, by the expiry of no more than what is in its way. */
function grant(state: LockState, entry: ModelEntry, horizon: number): LockState[] {
  const { queue, appended } = state;
  const at = queue.indexOf(entry);
  if (isGranted(queue, at)) return [state];
  const ahead = queue.slice(0, at);
  const inTheWay = ahead.filter(({ kind }) => kind !== entry.kind || kind === "exclusive");
  if (inTheWay.some(({ expires }) => expires > horizon)) return [];
  if (inTheWay.length > 0) {
    const cleared = queue.filter((other) => !inTheWay.includes(other));
    return grant({ queue: cleared, appended }, entry, horizon);
  }
  // Counted, and too heavy: any of those ahead may be the one that expired.
  return ahead
    .filter(({ expires }) => expires <= horizon)
    .flatMap((expired) => grant({ queue: without(queue, expired), appended }, entry, horizon));
}

/** What is not shown must have gone; what is shown must be there, and hold or wait as it was shown. */
function list(state: LockState, op: LockOp & { what: "list" }, horizon: number): LockState[] {
  const { holders, waiters, behindStrangers } = op;
  const isShown = (entry: ModelEntry): boolean => holders.includes(entry) || waiters.includes(entry);
  const queue = state.queue.filter(isShown);
  if (queue.length !== holders.length + waiters.length) return [];
  if (state.queue.some((entry) => !isShown(entry) && entry.expires > horizon)) return [];
  for (const [at, entry] of queue.entries()) {
    const granted = isGranted(queue, at);
    if (holders.includes(entry) ? !granted : granted && !behindStrangers.has(entry)) return [];
  }
  return [queue.length === state.queue.length ? state : { queue, appended: state.appended }];
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

function without(queue: readonly ModelEntry[], entry: ModelEntry): ModelEntry[] {
  return queue.filter((other) => other !== entry);
}
