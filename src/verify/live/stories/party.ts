/** A client's users as a story moves them: each way to ask for a lock and to give it back, with its record. Why they ask is left to the story. */
import type { Lock } from "../../../core/lock.ts";
import type { LockManager } from "../../../core/manager.ts";
import type { LockMode } from "../../../core/options.ts";
import type { LockInfo } from "../../../core/query.ts";
import type { Handle, Observer } from "../observer.ts";

/** What a user asks for. */
export interface Ask {
  readonly ttl: number;
  readonly mode?: LockMode;
  readonly wait?: number | undefined;
  readonly steal?: boolean;
  readonly renew?: boolean;
  readonly metadata?: string | undefined;
  /** With these it is permits that are asked for. */
  readonly permits?: number;
  readonly weight?: number;
  /** An attempt that is surely ahead. */
  readonly behind?: string;
}

/** A request that may wait. */
export interface Asking {
  readonly attempt: string;
  /** What was granted; null as long as nothing is, and if it was refused. */
  granted: Handle | null;
  /** What it ended with instead of a grant. */
  error: unknown;
  /** Resolves when it has ended. */
  readonly ended: Promise<Handle | null>;
}

/** Who holds and who waits. */
interface Listed {
  readonly held: readonly LockInfo[];
  readonly pending: readonly LockInfo[];
}

/** Marks the name of a semaphore in the record: a lock of the same name is another thing. */
const permitsMark = ", permits";

/** One client: who asks, and who records it. */
export class Party {
  readonly locks: LockManager;
  readonly observer: Observer;

  constructor(locks: LockManager, observer: Observer) {
    this.locks = locks;
    this.observer = observer;
  }

  /** Asks, and waits if need be. */
  ask(name: string, ask: Ask): Asking {
    const { mode, ttl, weight, permits, steal, behind, wait, renew, metadata } = ask;
    const { observer, locks } = this;
    const attempt = observer.ask("acquire", recorded(name, permits), {
      mode,
      ttl,
      weight,
      permits,
      steal,
      behind,
    });
    const hold = { ttl, renew, metadata };
    const asked =
      permits === undefined
        ? locks.acquire(name, { ...hold, mode, steal, wait })
        : locks.semaphore(name, permits).acquire({ ...hold, weight, wait });
    const ended = asked.then(
      (lock) => {
        asking.granted = observer.granted("acquire", attempt, lock, metadata);
        return asking.granted;
      },
      (error: unknown) => {
        asking.error = error;
        observer.refused("acquire", attempt, error, wait !== undefined);
        return null;
      },
    );
    const asking: Asking = { attempt, granted: null, error: null, ended };
    return asking;
  }

  /** Asks, and does not wait. */
  async try(name: string, { mode, ttl, weight, permits, renew }: Ask): Promise<Handle | null> {
    const { observer, locks } = this;
    const attempt = observer.ask("try", recorded(name, permits), { mode, ttl, weight, permits });
    let lock: Lock | null;
    try {
      lock = await (permits === undefined
        ? locks.tryAcquire(name, { mode, ttl, renew })
        : locks.semaphore(name, permits).tryAcquire({ weight, ttl, renew }));
    } catch (error) {
      observer.refused("try", attempt, error, false);
      return null;
    }
    if (lock !== null) return observer.granted("try", attempt, lock);
    observer.busy(attempt);
    return null;
  }

  /** `request`: the release is the library's, and a loss is told when the callback has ended. Gives what it rejects with. */
  async section(name: string, ask: Ask, body: (handle: Handle) => Promise<void>): Promise<unknown> {
    const { observer, locks } = this;
    const { mode, ttl, wait } = ask;
    const attempt = observer.ask("acquire", name, { mode, ttl });
    const passage: { inside: Promise<Handle> | null } = { inside: null };
    const enter = async (lock: Lock): Promise<Handle> => {
      const handle = observer.granted("acquire", attempt, lock);
      await body(handle);
      observer.leaves(handle);
      return handle;
    };
    let failed: unknown = null;
    try {
      await locks.request(name, { mode, ttl, wait }, (lock) => (passage.inside = enter(lock)));
    } catch (error) {
      failed = error;
    }
    if (passage.inside === null) observer.refused("acquire", attempt, failed, wait !== undefined);
    else {
      if (failed !== null) observer.explain(failed);
      // A request whose lock is stolen ends before its callback does.
      observer.left(await passage.inside, "unknown");
    }
    return failed;
  }

  /** Gives a lock back. */
  give(handle: Handle): Promise<"released" | "gone" | "unknown"> {
    return this.giveAll([handle], () => handle.lock.release());
  }

  /** Waits for a grant, and gives it back. */
  async giveWhenGranted({ ended }: Asking): Promise<void> {
    const handle = await ended;
    if (handle !== null) await this.give(handle);
  }

  /** Gives back what one call releases. */
  async giveAll(
    handles: readonly Handle[],
    release: () => Promise<"released" | "gone">,
  ): Promise<"released" | "gone" | "unknown"> {
    const { observer } = this;
    for (const handle of handles) observer.leaves(handle);
    let outcome: "released" | "gone" | "unknown";
    try {
      outcome = await release();
      // Of several, one that is gone does not say which.
      if (outcome === "gone" && handles.length > 1) outcome = "unknown";
    } catch (error) {
      observer.explain(error);
      outcome = "unknown";
    }
    for (const handle of handles) observer.left(handle, outcome);
    return outcome;
  }

  /** Who is listed under a name now; null if the store does not say. */
  async listed(name: string): Promise<Listed | null> {
    try {
      const { held, pending } = await this.locks.query({ prefix: name });
      const own = (info: LockInfo): boolean => info.name === name;
      return { held: held.filter(own), pending: pending.filter(own) };
    } catch (error) {
      this.observer.explain(error);
      return null;
    }
  }
}

function recorded(name: string, permits: number | undefined): string {
  return permits === undefined ? name : `${name}${permitsMark}`;
}
