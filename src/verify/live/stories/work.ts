/** What a holder does with its lock once faults may come: reads where the logs end, works for a while, and writes there. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Handle } from "../observer.ts";
import type { Workload } from "./story.ts";

/**
 * Reads, waits and writes: what two at once would do wrong. Some users stop when they see that the lock is lost; others go
 * on, and the fence has to stop them.
 */
export async function work(load: Workload, handle: Handle, counted = false): Promise<void> {
  const { dice, ttlMs, observer, fenced, unfenced } = load;
  const { name, lock } = handle;
  const exclusive = lock.mode === "exclusive" && !counted;
  const heedful = dice.chance(0.6);
  const places = exclusive
    ? await Promise.all([fenced.read(name, lock.token), unfenced.read(name, lock.token)])
    : [];
  await sleep(dice.between(0, ttlMs * dice.pick(0.02, 0.05, 0.1, 0.5)));
  if (!observer.seesHeld(handle) && heedful) return;
  await writeFenced(load, handle, places[0]);
  await writeUnfenced(load, handle, places[1]);
  observer.seesHeld(handle);
}

async function writeFenced(load: Workload, handle: Handle, at: number | null | undefined): Promise<void> {
  if (at === undefined || at === null) return;
  const { observer, fenced } = load;
  const { name, attempt, lock } = handle;
  const { token } = lock;
  const value = nextValue(load);
  const about = { f: "write", resource: name, attempt, value, token } as const;
  observer.record({ ...about, type: "invoke" });
  const accepted = await fenced.write({ name, token, attempt, at, value });
  observer.record({ ...about, type: accepted === undefined ? "info" : accepted ? "ok" : "fail" });
}

/** Without the fence a write may be undone as soon as anything goes wrong: it is counted, but it is no claim. */
async function writeUnfenced(load: Workload, handle: Handle, at: number | null | undefined): Promise<void> {
  if (at === undefined || at === null) return;
  const { name, attempt, lock } = handle;
  await load.unfenced.write({ name, token: lock.token, attempt, at, value: nextValue(load) });
}

function nextValue({ observer }: Workload): string {
  return `${observer.proc}:${observer.next()}`;
}
