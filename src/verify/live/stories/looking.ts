/** What those who tell a story wait for and look at: that others are in the queue, that nobody is, that somebody has heard. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Handle } from "../observer.ts";
import { type Stage } from "./story.ts";

/** Waits until so many are listed as waiting. A store that lists none is given a moment. */
export async function seeWaiting({ me, boundMs, object }: Stage, name: string, count: number): Promise<void> {
  if (me.locks.traits.order === "none") return sleep(20);
  const until = performance.now() + boundMs;
  for (;;) {
    const { pending } = await me.listed(name);
    if (pending.length >= count) return;
    if (performance.now() > until) {
      return object("A1", `${pending.length} are listed for ${name} where ${count} wait`);
    }
    await sleep(5);
  }
}

/** How long a listing may lag behind. */
const lagMs = 250;

/** Looks that nobody is listed where all have left. */
export async function seeNobody({ other, object }: Stage, names: readonly string[]): Promise<void> {
  const until = performance.now() + lagMs;
  for (const name of names) {
    for (;;) {
      const { held, pending } = await other.listed(name);
      const [left] = [...held, ...pending];
      if (left === undefined) break;
      if (performance.now() > until) {
        return object("L2", `token ${left.token} is listed for ${name}, which all have left`);
      }
      await sleep(5);
    }
  }
}

/** Whoever was robbed hears of it when it renews at the latest. */
export async function seeTold({ object }: Stage, handle: Handle, ttlMs: number): Promise<void> {
  if (!(await aborts(ttlMs, handle))) {
    object("M6", `nobody told the holder of ${handle.name} that it was taken away`);
  }
}

/** Whether a lock's signal aborts in time. */
export async function aborts(withinMs: number, { lock }: Handle): Promise<boolean> {
  const { signal } = lock;
  if (signal.aborted) return true;
  const aborted = new Promise<true>((resolve) => {
    signal.addEventListener("abort", () => resolve(true), { once: true });
  });
  return (await within(withinMs, aborted)) === true;
}

/** Waits for something, but not for ever. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  const late = sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}
