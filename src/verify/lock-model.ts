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
  /** Somebody is shown what no queue can look like. */
  | { readonly what: "nonsense" }
  /** Somebody is shown the queue. */
  | {
      readonly what: "list";
      readonly holders: ReadonlySet<ModelEntry>;
      readonly waiters: ReadonlySet<ModelEntry>;
      /** Those waiters that may wait for an entry that is not in the model. */
      readonly behindStrangers: ReadonlySet<ModelEntry>;
    };

/** A queue, first to last. */
export type LockState = readonly ModelEntry[];

/** The rules of a queue in arrival order. Entries expire only when something that happened needs them gone. */
export const lockModel: Model<LockState, LockOp> = {
  initial: [],

  step(queue, op, horizon) {
    switch (op.what) {
      case "append":
        return [[...queue, op.entry]];
      case "grant":
        return queue.includes(op.entry) ? grant(queue, op.entry, horizon) : [];
      case "take":
        return grant([...queue, op.entry], op.entry, horizon);
      case "refuse":
        return isGranted([...queue, op.entry], queue.length) ? [] : [queue];
      case "remove":
        return queue.includes(op.entry) ? [without(queue, op.entry)] : [];
      case "nonsense":
        return [];
      default:
        return list(queue, op, horizon);
    }
  },

  key(queue) {
    let text = "";
    for (const { id } of queue) text += `${id},`;
    return text;
  },
};

/** All ways to have an entry granted, by the expiry of no more than what is in its way. */
function grant(queue: LockState, entry: ModelEntry, horizon: number): LockState[] {
  const at = queue.indexOf(entry);
  if (isGranted(queue, at)) return [queue];
  const ahead = queue.slice(0, at);
  const inTheWay = new Set(ahead.filter(({ kind }) => kind !== entry.kind || kind === "exclusive"));
  for (const { expires } of inTheWay) if (expires > horizon) return [];
  if (inTheWay.size > 0) {
    const cleared = queue.filter((other) => !inTheWay.has(other));
    return grant(cleared, entry, horizon);
  }
  // Counted, and too heavy: any of those ahead may be the one that expired.
  return ahead
    .filter(({ expires }) => expires <= horizon)
    .flatMap((expired) => grant(without(queue, expired), entry, horizon));
}

/** What is not shown must have gone; what is shown must be there, and hold or wait as it was shown. */
function list(queue: LockState, op: LockOp & { what: "list" }, horizon: number): LockState[] {
  const { holders, waiters, behindStrangers } = op;
  const shown = queue.filter((entry) => holders.has(entry) || waiters.has(entry));
  if (shown.length !== holders.size + waiters.size) return [];
  const gone = queue.filter((entry) => !holders.has(entry) && !waiters.has(entry));
  if (gone.some(({ expires }) => expires > horizon)) return [];
  for (const [at, entry] of shown.entries()) {
    const granted = isGranted(shown, at);
    if (holders.has(entry) ? !granted : granted && !behindStrangers.has(entry)) return [];
  }
  return [gone.length === 0 ? queue : shown];
}

/** Exclusive: nobody ahead. Shared: only shared ahead. Counted: what is ahead leaves room. */
function isGranted(queue: LockState, at: number): boolean {
  const entry = queue[at];
  if (entry === undefined) return false;
  if (entry.kind === "exclusive") return at === 0;
  let weight = entry.weight;
  for (let before = 0; before < at; before += 1) {
    const other = queue[before];
    if (other?.kind !== entry.kind) return false;
    weight += other.weight;
  }
  return entry.kind === "shared" || weight <= entry.permits;
}

function without(queue: LockState, entry: ModelEntry): LockState {
  return queue.filter((other) => other !== entry);
}
