/** What a run has left in the store under its own names: counted, and taken away. No other name is looked at. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Backend, isBrowsable } from "../../core/backend.ts";
import { semaphoreQueue } from "../../core/names.ts";

/** What is left. */
export interface Left {
  readonly queues: number;
  readonly entries: number;
}

/** Waits until nothing is left, and gives what is when the time is over. A store that was just healed may take its time to answer. */
export async function leftWithin(ms: number, backend: Backend | null, prefix: string): Promise<Left> {
  if (backend === null) return { queues: 0, entries: 0 };
  const until = performance.now() + ms;
  for (;;) {
    const isLast = performance.now() > until;
    try {
      const left = await sweep(backend, prefix, false);
      if (left.queues === 0 || isLast) return left;
    } catch (error) {
      if (isLast) throw error;
    }
    await sleep(200);
  }
}

/** Counts what there is under a prefix, and takes it out if told so. */
export async function sweep(backend: Backend, prefix: string, remove: boolean): Promise<Left> {
  if (!isBrowsable(backend)) return { queues: 0, entries: 0 };
  const found = await Promise.all([backend.queues(prefix), backend.queues(semaphoreQueue(prefix))]);
  const queues = found.flat();
  let entries = 0;
  for (const queue of queues) {
    for (const { id } of await backend.list(queue)) {
      entries += 1;
      if (remove) await backend.remove(queue, id, true);
    }
  }
  return { queues: queues.length, entries };
}
