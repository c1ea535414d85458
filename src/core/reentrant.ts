/**
 * Opt-in reentrancy: which sections the current async context is in. A nested request enters the innermost section of
 * its lock; of two parallel branches inside one section the second waits for the first.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { onAbort } from "./aborts.ts";
import type { LockClient } from "./client.ts";
import type { Clock } from "./clock.ts";
import { LockError } from "./errors.ts";
import type { Lock } from "./lock.ts";
import { storeText } from "./report.ts";
import type { Callback } from "./section.ts";
import type { Wish } from "./wish.ts";

/** One entered section. Nested requests enter it one at a time, each in a section of its own. */
export class Section {
  readonly lock: Lock;
  readonly queue: string;
  readonly outer: Section | undefined;
  /** Whose section it is: all LockManagers share one storage. */
  readonly home: Sections;
  #open = true;
  #branches = 0;
  #lastTurn: Promise<void> = Promise.resolve();

  constructor(home: Sections, queue: string, lock: Lock, outer: Section | undefined) {
    this.home = home;
    this.queue = queue;
    this.lock = lock;
    this.outer = outer;
  }

  /** Whether nested requests may still enter. */
  get open(): boolean {
    return this.#open;
  }

  /** Whether a branch is inside or waits. */
  get busy(): boolean {
    return this.#branches > 0;
  }

  /**
   * Takes the turn when the branches before have left; gives the function that passes it on. When `givenUp` rejects
   * first, so does this.
   */
  async enter(givenUp: Promise<never> | null): Promise<() => void> {
    const before = this.#lastTurn;
    let passOn = (): void => {};
    this.#lastTurn = new Promise((resolve) => {
      passOn = resolve;
    });
    this.#branches += 1;
    const leave = (): void => {
      this.#branches -= 1;
      passOn();
    };
    try {
      await (givenUp === null ? before : Promise.race([before, givenUp]));
    } catch (error) {
      void before.then(leave);
      throw error;
    }
    return leave;
  }

  /** Resolves when all branches have left; nobody enters after that. */
  async close(): Promise<void> {
    while (this.#branches > 0) await this.#lastTurn;
    this.#open = false;
  }
}

/** One for the whole process, since each storage slows every promise down; made by the first reentrant request. */
let storage: AsyncLocalStorage<Section> | null = null;

/** The sections of one LockManager. */
export class Sections {
  /** The innermost open section of a queue that this context is in. */
  find(queue: string): Section | undefined {
    let section = storage?.getStore();
    while (section !== undefined && !(section.home === this && section.queue === queue && section.open)) {
      section = section.outer;
    }
    return section;
  }

  /** Runs a callback inside a section of a lock, and ends when the branches that it started have left, too. */
  async run(queue: string, lock: Lock | null, callback: Callback): Promise<unknown> {
    if (lock === null) return callback(null);
    storage ??= new AsyncLocalStorage();
    const section = new Section(this, queue, lock, storage.getStore());
    try {
      return await storage.run(section, () => callback(lock));
    } finally {
      await section.close();
    }
  }
}

/** Enters a section that this async context is in already, and runs the callback when the branches before have left. */
export async function nestedIn(
  outer: Section,
  wish: Wish,
  { clock, backend }: LockClient,
  callback: (lock: Lock | null) => Promise<unknown>,
): Promise<unknown> {
  const { lock } = outer;
  const details = { lock: wish.name, backend: backend.name };
  const shown = `lock ${JSON.stringify(wish.name)} on ${storeText(backend)}`;
  if (wish.mode === "exclusive" && lock.mode === "shared") {
    const message = `${shown}: it is held shared here; waiting for it exclusively inside would wait for itself`;
    throw new LockError("LOCK_UNSUPPORTED", message, details);
  }
  wish.signal?.throwIfAborted();
  lock.assertHeld();
  // Never before `request` has returned.
  if (wish.ifAvailable && outer.busy) return callback(await Promise.resolve(null));
  const waitIsOver = (): LockError =>
    new LockError("LOCK_TIMEOUT", `${shown}: another branch of this section is inside`, details);
  if (wish.waitMs === 0 && outer.busy) throw waitIsOver();
  const patience = new Patience(wish, clock, waitIsOver);
  const leave = await outer.enter(patience.over).finally(() => patience.end());
  const nested = lock.nested(leave);
  try {
    lock.assertHeld();
    const result = await callback(nested);
    if (!nested.released) lock.assertHeld();
    return result;
  } finally {
    await nested.release();
  }
}

/** The end of a local wait: by signal or by time. */
class Patience {
  readonly over: Promise<never> | null = null;
  readonly end: () => void = () => {};

  constructor(wish: Wish, clock: Clock, waitIsOver: () => LockError) {
    const { signal, waitMs } = wish;
    if (signal === undefined && waitMs === Number.POSITIVE_INFINITY) return;
    const { promise, reject } = deferred<never>();
    const endListening = signal === undefined ? null : onAbort(signal, () => reject(signal.reason));
    const timer =
      waitMs === Number.POSITIVE_INFINITY ? null : clock.after(waitMs, () => reject(waitIsOver()));
    promise.catch(() => {});
    this.over = promise;
    this.end = () => {
      endListening?.();
      timer?.cancel();
    };
  }
}

function deferred<T>(): { promise: Promise<T>; reject: (error: unknown) => void } {
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((_resolve, rejectPromise) => {
    reject = rejectPromise;
  });
  return { promise, reject };
}
