/** The guard for what lives in this process: check and write are one step, also for writes that take their time. */
import { systemClock } from "../core/clock.ts";
import { type Duration, durationMs, showMs } from "../core/duration.ts";
import { invalid, LockError } from "../core/errors.ts";
import { type Guard, isStale, staleToken } from "./guard.ts";
import { type Holder, tokenOf } from "./token.ts";

/** Options of memoryGuard. */
export interface MemoryGuardOptions {
  /**
   * How many resources are remembered. When there are more, the one that was not used for longest is forgotten, and from
   * then on a resource that is not known refuses what is older than any token that was forgotten: never a stale write,
   * but it may refuse a holder that first comes long after it was granted its lock.
   * @default 100000
   */
  readonly capacity?: number | undefined;
  /**
   * A guard that keeps the tokens when this process ends: each token is shown to it before the write begins. With one,
   * nothing is forgotten.
   */
  readonly keep?: Guard | undefined;
}

/** Options of a write. */
export interface MemoryWriteOptions {
  /**
   * How long to wait for writes of the same resource that are under way; then it rejects with LOCK_TIMEOUT.
   * @default "30s"
   */
  readonly wait?: Duration | undefined;
}

/** What a write does. The signal aborts when a newer token arrives while it is under way. */
export type Work<T> = (signal: AbortSignal) => T | Promise<T>;

/** A write that is under way or waits for its turn. */
interface Turn {
  readonly token: bigint;
  readonly lock: string | undefined;
  readonly abort: AbortController;
  begin(): void;
  refuse(error: LockError): void;
}

/** What is known of a resource. */
interface Known {
  highest: bigint;
  current: Turn | null;
  waiting: Turn[];
}

/** A guard of resources in this process. */
export function memoryGuard(options: MemoryGuardOptions = {}): MemoryGuard {
  const { capacity = 100_000, keep } = options;
  if (!(capacity >= 1)) throw invalid("capacity must be at least 1");
  return new MemoryGuard(capacity, keep);
}

/**
 * Guards resources by name. Writes of one resource are done one after the other, so that none is half done when another
 * begins. A token counts from the moment it arrives: from then on older ones are refused, those that wait included. A
 * write that is under way at that moment was let in before; it is told by its signal, and the newer one waits for its end.
 */
export class MemoryGuard implements Guard {
  readonly #capacity: number;
  readonly #keep: Guard | undefined;
  /** The one that was not used for longest is the first. */
  readonly #known = new Map<string, Known>();
  /** The highest token of all resources that were forgotten. */
  #forgotten: bigint | null = null;

  /** @internal Made by memoryGuard. */
  constructor(capacity: number, keep: Guard | undefined) {
    this.#capacity = capacity;
    this.#keep = keep;
  }

  /**
   * Does the work unless the resource has seen a newer token: then it rejects with LOCK_STALE_TOKEN, and the work was not
   * begun. If nothing is under way, the work begins before this returns. Gives what the work gives. Work that writes to
   * the same resource through the guard would wait for itself.
   */
  async write<T>(
    resource: string,
    holder: Holder,
    work: Work<T>,
    { wait = "30s" }: MemoryWriteOptions = {},
  ): Promise<T> {
    const { token, lock } = tokenOf(holder);
    const waitMs = durationMs(wait, { option: "wait", leastMs: 0, forEver: true });
    const known = this.#admit(resource, token, lock);
    const turn: Turn = { token, lock, abort: new AbortController(), begin() {}, refuse() {} };
    try {
      // Each pause is a chance for a newer token to arrive. Without one the work begins in this very turn of the event loop.
      if (known.current === null) known.current = turn;
      else await turnComes(known, turn, resource, waitMs);
      if (this.#keep !== undefined) await this.#keep.show(resource, holder);
      if (isStale(token, known.highest)) throw refusal(resource, turn, known.highest);
      return await work(turn.abort.signal);
    } finally {
      leave(known, turn);
    }
  }

  show(resource: string, holder: Holder): Promise<void> {
    return this.write(resource, holder, () => {});
  }

  async highest(resource: string): Promise<bigint | null> {
    const here = this.#known.get(resource)?.highest ?? null;
    const kept = (await this.#keep?.highest(resource)) ?? null;
    return here === null || (kept !== null && kept > here) ? kept : here;
  }

  /** How many resources are remembered. */
  get size(): number {
    return this.#known.size;
  }

  /** Lets a token in or refuses it; a new highest one ends the hope of all that are older. */
  #admit(resource: string, token: bigint, lock: string | undefined): Known {
    const known = this.#known.get(resource) ?? this.#learn(resource, token, lock);
    if (isStale(token, known.highest)) throw refusal(resource, { token, lock }, known.highest);
    this.#known.delete(resource);
    this.#known.set(resource, known);
    if (token > known.highest) raise(known, resource, token);
    return known;
  }

  #learn(resource: string, token: bigint, lock: string | undefined): Known {
    if (isStale(token, this.#forgotten)) {
      const message =
        `${resource} is not among the ${this.#capacity} resources that this guard remembers, and token ${token} is older than ` +
        `${this.#forgotten}, which it has forgotten one at: nothing was written, since it may be stale. Start over with a new lock`;
      throw new LockError("LOCK_STALE_TOKEN", message, { lock });
    }
    if (this.#known.size >= this.#capacity) this.#forgetOne();
    return { highest: token, current: null, waiting: [] };
  }

  /** Forgets the resource that was not used for longest; none that is being written. */
  #forgetOne(): void {
    for (const [resource, { current, highest }] of this.#known) {
      if (current !== null) continue;
      this.#known.delete(resource);
      // Where tokens are kept elsewhere, that guard knows the resource.
      if (this.#keep === undefined && !isStale(highest, this.#forgotten)) this.#forgotten = highest;
      return;
    }
  }
}

/** Waits until those who came before have ended; rejects when a newer token arrives or the wait is over. */
function turnComes(known: Known, turn: Turn, resource: string, waitMs: number): Promise<void> {
  known.waiting.push(turn);
  const comes = new Promise<void>((resolve, reject) => {
    turn.begin = resolve;
    turn.refuse = reject;
  });
  if (waitMs === Number.POSITIVE_INFINITY) return comes;
  const timer = systemClock.after(waitMs, () => {
    const message =
      `a write of ${resource} with token ${known.current?.token} is under way, and has not ended within the wait of ${showMs(waitMs)}: ` +
      "nothing was written; end that write, or wait longer";
    turn.refuse(new LockError("LOCK_TIMEOUT", message, { lock: turn.lock }));
  });
  return comes.finally(() => timer.cancel());
}

/** A newer token has arrived. */
function raise(known: Known, resource: string, token: bigint): void {
  known.highest = token;
  // What has begun cannot be taken back. What has not is refused, whenever it came.
  for (const turn of known.waiting) {
    if (isStale(turn.token, token)) turn.refuse(refusal(resource, turn, token));
  }
  known.waiting = known.waiting.filter((turn) => !isStale(turn.token, token));
  if (known.current !== null) known.current.abort.abort(refusal(resource, known.current, token));
}

/** A write has ended, or has given up waiting: the next one begins. */
function leave(known: Known, turn: Turn): void {
  known.waiting = known.waiting.filter((other) => other !== turn);
  if (known.current !== turn) return;
  known.current = known.waiting.shift() ?? null;
  known.current?.begin();
}

function refusal(
  resource: string,
  { token, lock }: Pick<Turn, "token" | "lock">,
  highest: bigint,
): LockError {
  return staleToken({ resource, token, highest, lock });
}
