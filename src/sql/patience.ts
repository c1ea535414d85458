/** Work on a connection that comes to an end whatever the server does: no driver notices one that is frozen or out of reach. */
import { afterReading, systemClock } from "../core/clock.ts";
import { LockError } from "../core/errors.ts";

/** Does work on a connection; when so much time has passed, the connection is destroyed, and it rejects. */
export function within<T>(ms: number, destroy: () => void, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = afterReading(systemClock, ms, () => {
      // Not every driver ends the queries of a connection that it destroys.
      reject(new Error(`it has not answered within ${ms} ms`));
      destroy();
    });
    work()
      .then(resolve, reject)
      .finally(() => timer.cancel());
  });
}

/** How long one step of a migration may take, in milliseconds, where calls may take less. */
const stepMs = 10_000;

/** How long one step of a migration may take, in milliseconds. */
export function migrationStepMs(deadlineMs: number): number {
  return Math.max(stepMs, deadlineMs);
}

/** How long a migration waits for another one, and how long between two tries, in milliseconds. */
const patienceMs = 60_000;
const pauseMs = 50;

/** Tries to take the lock of migrations until it is taken: a wait at the server would end with its limits, not ours. */
export async function takeTurn(backend: string, tryOnce: () => Promise<boolean>): Promise<void> {
  const until = systemClock.now() + patienceMs;
  while (!(await tryOnce())) {
    if (systemClock.now() > until) {
      const message = `${backend}: another migration has been going on for ${patienceMs / 1000} s`;
      throw new LockError("LOCK_UNAVAILABLE", message, { backend });
    }
    await new Promise<void>((resolve) => {
      systemClock.after(pauseMs * (0.5 + Math.random()), resolve);
    });
  }
}
