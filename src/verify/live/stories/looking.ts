/** What those who tell a story wait for and look at: that others are in the queue, that nobody is, that somebody has heard. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Handle } from "../observer.ts";
import { type Stage } from "./story.ts";

/** Waits until so many are listed as waiting, but not for ever. A store that lists none is given a moment. */
export async function seeWaiting({ me, boundMs }: Stage, name: string, count: number): Promise<void> {
  if (me.locks.traits.order === "none") return sleep(20);
  const until = performance.now() + boundMs;
  while (performance.now() < until) {
    const listed = await me.listed(name);
    if (listed === null || listed.pending.length >= count) return;
    await sleep(5);
  }
}

/** How long a listing may lag behind, and how many answers it may take until it does not. */
const lagMs = 250;
const lagAnswers = 5;

/** Looks that nobody is listed where all have left. */
export async function seeNobody({ other, object }: Stage, names: readonly string[]): Promise<void> {
  const since = performance.now();
  for (const name of names) {
    for (let tries = 1; ; tries += 1) {
      const listed = await other.listed(name);
      const left = listed?.held[0] ?? listed?.pending[0];
      if (left === undefined) break;
      if (tries > lagAnswers && performance.now() > since + lagMs) {
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
async function aborts(withinMs: number, { lock }: Handle): Promise<boolean> {
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
