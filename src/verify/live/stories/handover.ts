/** Stories about whose turn it is: who may hold together, who comes next, and how soon a waiter hears that it is its turn. */
import { setTimeout as sleep } from "node:timers/promises";
import { LockError } from "../../../core/errors.ts";
import { seeNobody, seeWaiting, within } from "./looking.ts";
import type { Party } from "./party.ts";
import { type Duet, ordered, type Stage } from "./story.ts";

const permits = 3;
const most = { permits, weight: 2 };

/** The stories of this file. */
export const handovers: readonly Duet[] = [
  { lastsMs: () => 500, needs: ({ locks }) => locks.traits.shared, tell: readTogether },
  { lastsMs: () => 500, needs: ({ locks }) => locks.traits.shared, tell: wakeAllReaders },
  { lastsMs: () => 500, needs: ({ locks }) => locks.traits.counted, tell: passPermitsOn },
  { lastsMs: () => 1_500, needs: ordered, tell: (stage) => standInLine(stage, false) },
  {
    lastsMs: () => 1_500,
    needs: (load) => ordered(load) && load.locks.traits.counted,
    tell: (stage) => standInLine(stage, true),
  },
  { lastsMs: () => 500, tell: raceForFree },
  { lastsMs: () => 1_000, tell: handToAndFro },
  { lastsMs: () => 500, needs: ordered, tell: giveUp },
];

/** Two readers hold at the same time: the second does not wait until the first has left. */
async function readTogether({ me, other, name, boundMs, longTtlMs }: Stage): Promise<void> {
  const lock = name("readers");
  const ask = { mode: "shared", ttl: longTtlMs } as const;
  const first = await me.ask(lock, ask).ended;
  const second = other.ask(lock, ask);
  // Whoever does not get it while the first is there has waited too long.
  await within(2 * boundMs, second.ended);
  if (first !== null) await me.give(first);
  await other.giveWhenGranted(second);
}

/** When a writer leaves, all readers behind it come at once. */
async function wakeAllReaders(stage: Stage): Promise<void> {
  const { me, other, name, longTtlMs: ttl } = stage;
  const lock = name("writer");
  const writer = await me.ask(lock, { ttl }).ended;
  const readers = [other, other, me].map((party) => ({
    party,
    asking: party.ask(lock, { ttl, mode: "shared" }),
  }));
  await seeWaiting(stage, lock, readers.length);
  if (writer !== null) await me.give(writer);
  await Promise.all(readers.map(({ party, asking }) => party.giveWhenGranted(asking)));
}

/** Whoever waits for permits is told when there are enough. It would look by itself after a third of its ttl. */
async function passPermitsOn(stage: Stage): Promise<void> {
  const { me, other, name, longTtlMs } = stage;
  const lock = name("pool");
  const ttl = 3 * longTtlMs;
  const held = await me.ask(lock, { ttl, permits, weight: permits }).ended;
  const waiting = other.ask(lock, { ttl, ...most });
  await seeWaiting(stage, lock, 1);
  if (held !== null) await me.give(held);
  await other.giveWhenGranted(waiting);
}

/**
 * Those who ask come in the order in which they have asked: of one client by their calls, of two when the first was seen in
 * the queue. Those who wait for permits look again meanwhile, and keep their places.
 */
async function standInLine(stage: Stage, counted: boolean): Promise<void> {
  const { load, me, other, name, longTtlMs } = stage;
  const lock = name("line");
  const kind = counted ? most : {};
  const ttl = counted ? Math.max(1_200, 3 * load.ttlMs) : longTtlMs;
  const held = await me.ask(lock, { ttl, ...kind }).ended;
  const first = other.ask(lock, { ttl, ...kind });
  const second = other.ask(lock, { ttl, ...kind, behind: first.attempt });
  const third = other.ask(lock, { ttl, ...kind, behind: second.attempt });
  await seeWaiting(stage, lock, 3);
  const last = me.ask(lock, { ttl, ...kind, behind: third.attempt });
  if (counted) await sleep(ttl / 3 + 60);
  if (held !== null) await me.give(held);
  await Promise.all([
    other.giveWhenGranted(first),
    other.giveWhenGranted(second),
    other.giveWhenGranted(third),
    me.giveWhenGranted(last),
  ]);
}

/** Two ask for a free lock in the same moment, several times: one of them comes first. */
async function raceForFree({ load, me, other, name, longTtlMs: ttl }: Stage): Promise<void> {
  const run = async (party: Party, lock: string): Promise<void> => {
    const handle = await party.ask(lock, { ttl }).ended;
    if (handle === null) return;
    await sleep(load.dice.between(5, 20));
    await party.give(handle);
  };
  for (let round = 0; round < 6; round += 1) {
    const lock = name(`race${round}`);
    await Promise.all([run(me, lock), run(other, lock)]);
  }
}

/** Many hand-overs with hardly a hold in between: somebody leaves just when the next begins to watch. */
async function handToAndFro({ load, me, other, name, longTtlMs }: Stage): Promise<void> {
  const lock = name("relay");
  const { dice } = load;
  const run = async (party: Party): Promise<void> => {
    for (let round = 0; round < 12; round += 1) {
      const handle = await party.ask(lock, { ttl: longTtlMs }).ended;
      if (handle === null) return;
      if (dice.chance(0.7)) await sleep(dice.between(0, 6));
      await party.give(handle);
    }
  };
  await Promise.all([run(me), run(other)]);
}

/** Whoever gives up is told how many were ahead, and whose the nearest was. */
async function giveUp(stage: Stage): Promise<void> {
  const { me, other, name, longTtlMs: ttl, object } = stage;
  const lock = name("queue");
  const held = await me.ask(lock, { ttl }).ended;
  const nearest = other.ask(lock, { ttl });
  await seeWaiting(stage, lock, 1);
  const hasty = me.ask(lock, { ttl, wait: 80 });
  await hasty.ended;
  if (held?.lock.held === true && hasty.error instanceof LockError && hasty.error.code === "LOCK_TIMEOUT") {
    const told = /(\d+) ahead, the nearest is (.*)$/.exec(hasty.error.message);
    const label = JSON.stringify(other.observer.proc);
    if (told?.[1] !== "2" || told[2]?.startsWith(`${label},`) !== true) {
      object("A1", `behind two, the nearest of them ${label}, it was told: ${hasty.error.message}`);
    }
  }
  if (held !== null) await me.give(held);
  await other.giveWhenGranted(nearest);
  await seeNobody(stage, [lock]);
}
