/**
 * The seam between the core and a store: a backend keeps, per lock name, one ordered queue of entries, and nothing
 * more. Who holds is decided in grant.ts; waiting, renewing and reentrancy are written once, in the core.
 *
 * The laws (each is a case of the contract suite in ../testing):
 *  1. Commit order: once an entry is visible, none ever appears ahead of it.
 *  2. Grants are monotone: a rule looks only ahead, so a stale snapshot is safe.
 *  3. append is idempotent by id: again with the id of a live entry, it gives that entry and where it stands now.
 *  4. One trip when free: append says what is ahead. With a limit it refuses and leaves nothing behind.
 *  5. seq never goes back, not when the queue empties, not when the store is wiped.
 *  6. watch is a hint: late, twice or never. But a target that left before the watch stood is reported too.
 *  7. The store's clock expires entries; the client's monotonic clock bounds belief.
 *  8. A hand-over does not cost more as the queue grows.
 *  9. Nothing outlives its owner: after release, cancel or crash + ttl nothing is left in the store or the process.
 */

/** How an entry is blocked: a writer by all that is ahead, a reader only by the writers ahead. */
export type EntryMode = "read" | "write";

/** Who made an entry, for people: shown in listings, never compared. */
export interface Owner {
  /** The id of the LockManager, random per instance. */
  readonly client: string;
  readonly host: string;
  readonly pid: number;
  readonly label?: string | undefined;
}

/** One request in a queue, as the store sees it now. */
export interface Entry {
  /** Chosen by the client, unique for ever. */
  readonly id: string;
  readonly owner: Owner;
  readonly mode: EntryMode;
  /** How many permits it takes; 1 for a lock. */
  readonly weight: number;
  /** How many permits there are, for an entry of a semaphore; absent for a lock. */
  readonly permits?: number | undefined;
  /** Given by the store, growing in commit order: the fencing token. */
  readonly seq: bigint;
  /** What is left of its life by the store's clock, in milliseconds, never rounded up. */
  readonly expiresInMs: number;
  /** How long it has been in the queue, in milliseconds: for people. */
  readonly ageMs: number;
  readonly metadata?: string | undefined;
}

/** What a client asks a store to append. */
export interface NewEntry {
  readonly id: string;
  readonly owner: Owner;
  readonly mode: EntryMode;
  readonly weight: number;
  readonly permits?: number | undefined;
  readonly ttlMs: number;
  readonly metadata?: string | undefined;
  /**
   * Refuse (give null, leave nothing behind) unless the entry would be granted at once, by the rule of grant.ts.
   * @default false
   */
  readonly onlyIfGranted?: boolean;
}

/** What stands ahead of an entry: enough for every rule, and cheap for a store to compute. */
export interface Ahead {
  readonly count: number;
  readonly weight: number;
  /** The last entry ahead, or null when the entry is the first. */
  readonly nearest: Entry | null;
  /** The last writer ahead, or null when only readers are ahead. */
  readonly nearestWriter: Entry | null;
}

/** An entry and what was ahead of it at one moment. */
export interface Snapshot {
  readonly self: Entry;
  readonly ahead: Ahead;
}

/**
 * A wish to extend the life of one entry to ttlMs from now. The core gives the same object each time that it asks for the same entry,
 * so a backend may keep what it makes of it; never more than weakly, since nobody says when it was asked for the last time.
 */
export interface Renewal {
  readonly queue: string;
  readonly id: string;
  /**
   * The seq that the client knows its entry by. An entry that expired and was appended again has another one: then the
   * one that is meant is gone.
   */
  readonly seq: bigint;
  readonly ttlMs: number;
}

/**
 * What became of a renewal. `gone`: surely not in the queue; `evicted` says that somebody else took it out, where the
 * store can tell. `unknown`: it may or may not have happened.
 */
export type Renewed =
  | { readonly outcome: "renewed"; readonly expiresInMs: number }
  | { readonly outcome: "gone"; readonly evicted?: boolean }
  | { readonly outcome: "unknown"; readonly cause?: unknown };

/** A fault that a store may not survive. */
export type Fault =
  | "process-restart"
  | "store-restart"
  /** A server that stood still, or was out of touch with the others, for longer than a ttl goes on. */
  | "store-pause"
  | "fail-over"
  | "clock-step"
  | "eviction";

/** What a backend promises, as data: read by the core, by `connect(url, { require })`, by docs and by the CLI. */
export interface Traits {
  /** Which clients exclude each other. */
  readonly scope: "process" | "machine" | "network";
  /** Whether the queue is granted in arrival order. */
  readonly order: "fifo" | "none";
  readonly shared: boolean;
  readonly counted: boolean;
  /** Whose clock expires entries. */
  readonly expiry: "process" | "machine" | "store";
  /** Where tokens come from; null where a Lock carries none that a resource could check. */
  readonly tokens: string | null;
  /** How waiters learn that it is their turn. */
  readonly wake: "push" | "poll";
  /** Faults after which two holders may believe at once. */
  readonly exclusivityBrokenBy: readonly Fault[];
  /** Faults after which a token may be lower than an earlier one. */
  readonly tokensRegressAfter: readonly Fault[];
  /**
   * Whether calls of one client take effect in the order in which they were made, even while earlier ones are under
   * way. Where not, the core sends the appends of one queue one after the other.
   */
  readonly callOrder: boolean;
}

/** An answer that a store may have at once: the core then goes on without a turn of the event loop. */
export type Answer<T> = Promise<T> | T;

/** A store of queues, as seen by one client. */
export interface Backend {
  readonly name: string;
  /** Optional: where the store is, for messages: host and port for example, never a user or a password. */
  readonly place?: string | undefined;
  readonly traits: Traits;

  /**
   * Puts an entry at the tail of a queue, or finds it there again, and says what is ahead. An entry that is found
   * keeps its place, its seq and its remaining life. Rejects with a LockError: LOCK_UNAVAILABLE when it surely did not
   * happen, LOCK_OUTCOME_UNKNOWN otherwise. The signal says that nobody wants the answer any more; it undoes nothing.
   */
  append(queue: string, entry: NewEntry, signal?: AbortSignal): Answer<Snapshot | null>;

  /** Extends entries, many at once; answers in the same order. Never brings an entry back. */
  renew(renewals: readonly Renewal[]): Promise<readonly Renewed[]>;

  /**
   * Takes an entry out: leaving the queue and releasing are the same thing. True if it was there.
   * With `evict`, says that somebody else than its owner takes it out: renew then answers `evicted` where it can. With a
   * seq, only the entry that has it is meant: whoever was evicted may have joined again with the same id.
   */
  remove(queue: string, id: string, evict?: boolean, seq?: bigint): Answer<boolean>;

  /**
   * Optional: remove, for an entry whose lock this client has handed to its own next entry, the heir, without asking. Nobody waits for
   * this call, and the heir need not be told. A backend that has it promises that an entry that waits stays where it is as surely
   * as one that holds: until its life ends, only an eviction or a loss of data takes it out.
   */
  handOver?(queue: string, id: string, seq: bigint, heir: string): Answer<boolean>;

  /** The live entries of a queue, first to last. */
  list(queue: string): Promise<readonly Entry[]>;

  /**
   * Calls onChange when `target` leaves the queue (null: when `self` may have become grantable), or at once if it has
   * left already; a call may carry what is ahead of `self` now. Gives the function that ends the watch.
   */
  watch(
    queue: string,
    self: Entry,
    target: Entry | null,
    onChange: (fresh?: Snapshot) => void,
  ): Answer<() => void>;

  /** Optional: calls the listener, as a hint, when an entry of this client was evicted. */
  onEvicted?(listener: (queue: string, id: string) => void): void;

  /** Ends all that this client keeps open. Entries that it still has are left to their ttl. */
  close(): Promise<void>;
}

/** A backend that can name its queues: for query, the CLI and the dashboard. */
export interface Browsable {
  /** Names of the queues that have entries and start with the prefix, in no order. */
  queues(prefix: string): Promise<readonly string[]>;
}

/** Whether a backend can name its queues. */
export function isBrowsable(backend: Backend): backend is Backend & Browsable {
  return "queues" in backend && typeof backend.queues === "function";
}

/** Something that a look at the store has shown. */
export interface Finding {
  /** `ok`: as it should be. `warning`: a promise may break. `problem`: a promise does not hold now. */
  readonly level: "ok" | "warning" | "problem";
  /** What was looked at, in a few words. */
  readonly about: string;
  /** What was seen. */
  readonly seen: string;
  /** What to do about it; absent where nothing is to be done. */
  readonly todo?: string | undefined;
}

/** A backend that can examine its store: for `holdfast doctor`. */
export interface Examinable {
  /** Looks at the store without changing it: settings and state on which its promises rest. */
  examine(): Promise<readonly Finding[]>;
}

/** Whether a backend can examine its store. */
export function isExaminable(backend: Backend): backend is Backend & Examinable {
  return "examine" in backend && typeof backend.examine === "function";
}

/** A backend that looks at its store before it is used: `connect` asks it to, and warns of what it gives. */
export interface Admissible {
  /**
   * Waits until the store answers, and gives what is not as it should be. Rejects if it does not answer, or if the settings of the
   * backend refuse such a store.
   */
  admit(): Promise<readonly Finding[]>;
}

/** Whether a backend looks at its store before it is used. */
export function isAdmissible(backend: Backend): backend is Backend & Admissible {
  return "admit" in backend && typeof backend.admit === "function";
}

/** A backend whose store needs tables or the like before it can be used: for `holdfast migrate`. */
export interface Migratable {
  /** Creates what is missing or brings it up to date, and gives the versions that were applied. Any number may do it at once. */
  migrate(): Promise<readonly number[]>;
}

/** Whether a backend's store has to be prepared. */
export function isMigratable(backend: Backend): backend is Backend & Migratable {
  return "migrate" in backend && typeof backend.migrate === "function";
}
