/**
 * What happened, event by event: the event type and the recorder. The text form is in history-text.ts; what a history
 * means is left to trace.ts, and whether it is right to checker.ts.
 */

/**
 * What an event is about.
 *
 * Calls, each an `invoke` before it and one of `ok`, `fail`, `info` after it:
 *  - `acquire`: a request that may wait. `ok` carries `token` and `validUntil`.
 *  - `try`: a request that does not wait (ifAvailable, tryAcquire). `ok` with `busy: true` is the answer "not now".
 *  - `renew`: `ok` carries the new `validUntil`.
 *  - `release`: leaving the queue, granted or not. "gone" is a `fail`. A repeat answered from memory is not recorded.
 *  - `evict`: somebody else takes out the entry of `attempt` (force-release).
 *  - `write`: a client writes `value` to the guarded resource; `ok` means that it was acknowledged.
 *  - `read`: `ok` carries `values`, all that the resource has.
 *  - `query`: `ok` carries `holders` and `waiters` of one lock.
 *
 * Single events, never `invoke`:
 *  - `lost`: the holder of `attempt` was told that it no longer holds.
 *  - `held`: a user saw `held === true` on the lock of `attempt`.
 *  - `cancel`: a user gave up waiting for `attempt`.
 *  - `guard`: the resource's own log, in arrival order: `ok` accepted, `fail` refused a write with `token`.
 *  - `end`: what was left when everything was over. Without one, a history counts as cut off.
 *
 * By the nemesis: `fault`, `invoke` when it begins and `ok` when it is healed; `info` for what has no length. A `kill`
 * is an `info` with the dead `proc` as `target`; after it that name is never used again.
 */
export type Operation =
  | "acquire"
  | "try"
  | "renew"
  | "release"
  | "evict"
  | "write"
  | "read"
  | "query"
  | "lost"
  | "held"
  | "cancel"
  | "guard"
  | "fault"
  | "end";

/** `fail`: surely not done. `info`: it may or may not have happened. */
export type Phase = "invoke" | "ok" | "fail" | "info";

/** One event of a history. Numbers that outgrow 2^53 are bigint here and decimal text in JSON. */
export interface HistoryEvent {
  /** Position in the history: 0, 1, 2 … without a gap. Events of one moment happened in this order. */
  readonly i: number;
  /** Monotonic nanoseconds, never falling from one event to the next. */
  readonly t: bigint;
  /** Who did it: one lane of the report. */
  readonly proc: string;
  readonly f: Operation;
  readonly type: Phase;
  /** The lock name. */
  readonly lock?: string | undefined;
  /** The request this is about, unique for ever: minted by acquire and try, named by all that follows from them. */
  readonly attempt?: string | undefined;
  /** Tells apart calls of one kind that are under way at once for one attempt, or for one proc where there is none. */
  readonly call?: number | undefined;
  /** Who may release; the proc where absent. */
  readonly owner?: string | undefined;
  readonly token?: bigint | undefined;
  /** Milliseconds. */
  readonly ttl?: number | undefined;
  /** When the request that granted or renewed was sent, on the clock of t. */
  readonly sentAt?: bigint | undefined;
  /** From this moment on the holder no longer believes, on the clock of t; absent: it holds until told otherwise. */
  readonly validUntil?: bigint | undefined;
  /** @default "exclusive" */
  readonly mode?: "exclusive" | "shared" | undefined;
  /** @default 1 */
  readonly weight?: number | undefined;
  /** How many permits there are: makes a request counted. */
  readonly permits?: number | undefined;
  /** On the invoke: takes the lock from whoever has it. */
  readonly steal?: boolean | undefined;
  /**
   * On the invoke of an acquire: an earlier attempt for the same lock that was seen in its queue by then, or that the same
   * client had made before: this one has to be behind it.
   */
  readonly behind?: string | undefined;
  /** On the ok of a nested acquire: the attempt on whose strength it entered without asking the store. */
  readonly parent?: string | undefined;
  /** On the ok of a try: it was not granted. */
  readonly busy?: boolean | undefined;
  /** On the ok of a query: tokens of those who hold, in queue order. */
  readonly holders?: readonly bigint[] | undefined;
  /** On the ok of a query: tokens of those who wait, in queue order. */
  readonly waiters?: readonly bigint[] | undefined;
  /** What is guarded; the lock's name where absent. */
  readonly resource?: string | undefined;
  readonly value?: string | undefined;
  readonly values?: readonly string[] | undefined;
  readonly backend?: string | undefined;
  /** Which fault: pause, kill, drop, jump, partition … */
  readonly fault?: string | undefined;
  /** Whom a fault hits: a proc, or anything else a person understands. */
  readonly target?: string | undefined;
  /** On end: what is left above the baseline, by kind; all zero when nothing leaked. */
  readonly leaks?: Readonly<Record<string, number>> | undefined;
  /** On end: how many calls had not settled. */
  readonly pending?: number | undefined;
  /** For people. */
  readonly detail?: string | undefined;
}

/** An event as its author knows it; the recorder adds position and time. */
export type NewEvent = Omit<HistoryEvent, "i" | "t">;

/** A history that cannot be read: which event or line, and why. */
export class HistoryError extends Error {
  override readonly name = "HistoryError";
}

/** How a recorder takes time and where else its events go. */
export interface HistoryOptions {
  /** @default process.hrtime.bigint */
  readonly now?: () => bigint;
  /** Called with each event as it is recorded: to append it to a file that outlives a crash. */
  readonly onRecord?: (event: HistoryEvent) => void;
}

/** Records events in the order in which record is called. */
export class History {
  readonly #events: HistoryEvent[] = [];
  readonly #now: () => bigint;
  readonly #onRecord: ((event: HistoryEvent) => void) | undefined;

  constructor(options: HistoryOptions = {}) {
    this.#now = options.now ?? (() => process.hrtime.bigint());
    this.#onRecord = options.onRecord;
  }

  /** All that was recorded so far, as check wants it. */
  get events(): readonly HistoryEvent[] {
    return this.#events;
  }

  /** Adds an event that happens now, or at a moment taken since the last one: before an answer was looked at, say. */
  record(event: NewEvent, t: bigint = this.#now()): HistoryEvent {
    const recorded: HistoryEvent = { i: this.#events.length, t, ...event };
    this.#events.push(recorded);
    this.#onRecord?.(recorded);
    return recorded;
  }
}

/** Joins what several processes of one machine recorded into one history, by time. */
export function mergeHistories(...parts: readonly (readonly HistoryEvent[])[]): HistoryEvent[] {
  const all = parts.flat();
  all.sort((a, b) => (a.t < b.t ? -1 : a.t > b.t ? 1 : 0));
  return renumber(all);
}

/** Gives events new positions, for a history of which some were taken out. */
export function renumber(events: readonly HistoryEvent[]): HistoryEvent[] {
  return events.map((event, i) => (event.i === i ? event : { ...event, i }));
}
