/**
 * Stories of tools that speak to the store itself, as an operator's do: who is told of a change and who is not, and what a removal
 * means. A LockManager would ask the store again and notice nothing.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Backend, Entry, Snapshot } from "../../../core/backend.ts";
import { hasCode } from "../../../core/errors.ts";
import { type Duet, ordered, type Stage, type Workload } from "./story.ts";

/** How long a call that must not come is waited for, in milliseconds. */
const quietMs = 60;

/** An answer that takes longer need not say why an entry is gone, in milliseconds. */
const slowMs = 500;

/** How long a hint that has to come is waited for, in milliseconds. */
const patienceMs = 3_000;

/** A hint that came once may be that of a connection that was lost; one that comes each time is a habit. */
const herdRounds = 3;

/** In how many rounds a watch is met before others have called it, or word of an eviction comes through. */
const rounds = 4;

/** One client tells them: they are about the store. */
function first({ place }: Workload): boolean {
  return place === 0;
}

/** The stories of this file. */
export const tools: readonly Duet[] = [
  { lastsMs: () => 1_500, needs: (load) => first(load) && ordered(load), tell: wakeTheNextOnly },
  { lastsMs: () => 1_000, needs: (load) => first(load) && ordered(load), tell: leaveWhileLooking },
  { lastsMs: () => 500, needs: (load) => first(load) && ordered(load), tell: endWatch },
  { lastsMs: () => 1_500, needs: (load) => first(load) && ordered(load), tell: closeWhileWatching },
  { lastsMs: () => 1_000, needs: first, tell: tellOwnersOnly },
  { lastsMs: () => 500, needs: first, tell: evictWhileRenewing },
  { lastsMs: () => 500, needs: first, tell: leaveOneQueue },
];

/** When the first of a line leaves, the second is told, and the third is not. */
async function wakeTheNextOnly(stage: Stage): Promise<void> {
  let herds = 0;
  for (let round = 0; round < herdRounds; round++) {
    const queue = stage.name(`line${round}`);
    await withTwo(stage, async (holder, waiters) => {
      const ahead = await join(stage, holder, queue);
      const second = await watch(waiters, queue, await join(stage, waiters, queue));
      const third = await watch(waiters, queue, await join(stage, waiters, queue));
      const before = third.calls();
      await leave(holder, queue, ahead.self);
      await sleep(quietMs);
      if (second.calls() > 0 && third.calls() > before) herds += 1;
      for (const { unwatch, self } of [second, third]) {
        unwatch();
        await leave(waiters, queue, self);
      }
    });
  }
  if (herds === herdRounds) stage.object("A1", "each hand-over woke the third in line, too");
}

/** Whoever looks just while the one ahead leaves, and hears that it is there, is told that it has left: once at least, since hints may be lost. */
async function leaveWhileLooking(stage: Stage): Promise<void> {
  let [told, untold] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    if (told > 0 || untold === 2) break;
    const queue = stage.name(`looking${round}`);
    await withTwo(stage, async (holder, waiter) => {
      const ahead = await join(stage, holder, queue);
      const said = await join(stage, waiter, queue);
      const before = await watch(waiter, queue, said);
      const looking = join(stage, waiter, queue, said.self.id);
      const [found] = await Promise.all([looking, leave(holder, queue, ahead.self)]);
      before.unwatch();
      if (found.ahead.nearest !== null) {
        const { unwatch, calls } = await watch(waiter, queue, found);
        const until = performance.now() + patienceMs;
        while (calls() === 0 && performance.now() < until) await sleep(10);
        if (calls() === 0) untold += 1;
        else told += 1;
        unwatch();
      }
      await leave(waiter, queue, said.self);
    });
  }
  if (untold === 2) stage.object("L1", "whoever looked while the one ahead left was never told that it had");
}

/** Whoever has ended its watch is not called any more. */
async function endWatch(stage: Stage): Promise<void> {
  const queue = stage.name("ended");
  await withTwo(stage, async (holder, waiter) => {
    const ahead = await join(stage, holder, queue);
    const { self, unwatch, calls } = await watch(waiter, queue, await join(stage, waiter, queue));
    unwatch();
    const before = calls();
    await leave(holder, queue, ahead.self);
    await sleep(quietMs);
    if (calls() > before) stage.object("L2", `a watch of ${queue} was called that had ended`);
    await leave(waiter, queue, self);
  });
}

/** Nor is whoever has closed. */
async function closeWhileWatching(stage: Stage): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const queue = stage.name(`closed${round}`);
    await withTwo(stage, async (holder, waiter) => {
      const ahead = await join(stage, holder, queue);
      const { self, calls } = await watch(waiter, queue, await join(stage, waiter, queue));
      await waiter.close();
      const before = calls();
      await leave(holder, queue, ahead.self);
      await sleep(quietMs);
      if (calls() > before) stage.object("L2", `a watch of ${queue} was called whose client had closed`);
      // Its entry is left to its ttl, or to others.
      await leave(holder, queue, self);
    });
  }
}

/** An eviction is told to whom it was done. */
async function tellOwnersOnly(stage: Stage): Promise<void> {
  const { name, object, longTtlMs: ttlMs } = stage;
  await withTwo(stage, async (owner, thief) => {
    const told = new Set<string>();
    owner.onEvicted?.(() => {});
    thief.onEvicted?.((_queue, id) => told.add(id));
    for (let round = 0; round < rounds; round++) {
      const queue = name(`evicted${round}`);
      const { self } = await join(stage, owner, queue);
      await thief.remove(queue, self.id, true, self.seq);
      // It asks, so that no word of it is left in the store.
      await owner.renew([{ queue, id: self.id, seq: self.seq, ttlMs }]);
      await sleep(quietMs / 2);
      if (told.has(self.id)) object("A1", `of an eviction from ${queue} somebody else was told`);
    }
  });
}

/** Whoever renews just while it is evicted hears of it, too. */
async function evictWhileRenewing(stage: Stage): Promise<void> {
  const { name, object, longTtlMs: ttlMs } = stage;
  await withTwo(stage, async (owner, thief) => {
    for (let round = 0; round < rounds; round++) {
      const queue = name(`met${round}`);
      const { self } = await join(stage, owner, queue);
      const renewal = { queue, id: self.id, seq: self.seq, ttlMs };
      const twice = await owner.renew([renewal, renewal]);
      if (twice.some(({ outcome }) => outcome === "gone")) {
        object("M6", `whoever holds ${queue} and renews twice at once was told that its entry is gone`);
      }
      const begunAt = performance.now();
      const [[answer]] = await Promise.all([
        owner.renew([renewal]),
        thief.remove(queue, self.id, true, self.seq),
      ]);
      // A store that takes its time need not know any more why it is gone.
      const slow = performance.now() - begunAt > slowMs;
      if (answer?.outcome === "gone" && answer.evicted !== true && !slow) {
        object("A1", `whoever was evicted from ${queue} was told that its entry is gone, and not why`);
      }
      // It asks again, so that no word of it is left in the store.
      await owner.renew([renewal]);
    }
  });
}

/** Who is taken out of another queue stays, and who leaves by itself was not evicted. */
async function leaveOneQueue(stage: Stage): Promise<void> {
  const { name, object, longTtlMs: ttlMs } = stage;
  const queue = name("left");
  await withTwo(stage, async (owner, other) => {
    const { self } = await join(stage, owner, queue);
    await leave(other, name("another"), self);
    if (!(await owner.list(queue)).some(({ id }) => id === self.id)) {
      object("M5", `an entry of ${queue} left when it was taken out of another queue`);
    }
    await leave(owner, queue, self);
    const [renewed] = await owner.renew([{ queue, id: self.id, seq: self.seq, ttlMs }]);
    if (renewed?.outcome === "gone" && renewed.evicted === true) {
      object("A1", `who had left ${queue} by itself was told that it was evicted`);
    }
  });
}

/** Gives two clients of the store to a story, and closes them. */
async function withTwo({ load }: Stage, tell: (one: Backend, two: Backend) => Promise<void>): Promise<void> {
  const one = await load.open();
  try {
    const two = await load.open();
    try {
      await tell(one, two);
    } finally {
      await two.close();
    }
  } finally {
    await one.close();
  }
}

/** Puts an entry into a queue, or finds the one with this id. After an unknown outcome the same is asked again, and finds it. */
async function join(
  stage: Stage,
  client: Backend,
  queue: string,
  id: string = randomUUID(),
): Promise<Snapshot> {
  const { load, me, longTtlMs } = stage;
  const { proc } = me.observer;
  const owner = { client: `${proc}/tool`, host: hostname(), pid: process.pid, label: proc };
  const entry = { id, owner, mode: "write", weight: 1, ttlMs: longTtlMs } as const;
  for (let tries = 1; ; tries++) {
    try {
      const said = await client.append(queue, entry);
      if (said !== null) return said;
      throw new Error(`an entry of ${load.prefix} was refused that asked to wait`);
    } catch (error) {
      if (tries === 3 || !hasCode(error, "LOCK_OUTCOME_UNKNOWN")) throw error;
    }
  }
}

async function leave(client: Backend, queue: string, { id, seq }: Entry): Promise<void> {
  await client.remove(queue, id, false, seq);
}

/** Watches the entry that is in the way, and counts the calls. */
async function watch(
  client: Backend,
  queue: string,
  { self, ahead }: Snapshot,
): Promise<{ readonly self: Entry; readonly unwatch: () => void; readonly calls: () => number }> {
  let count = 0;
  const unwatch = await client.watch(queue, self, ahead.nearest, () => {
    count += 1;
  });
  return { self, unwatch, calls: () => count };
}
