/**
 * Stories that each user tells alone, whatever the others do: all ways to take a lock, with and without patience. What is
 * right is for the checker to say.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LockMode } from "../../../core/options.ts";
import { lookAtQueue } from "../listing.ts";
import type { Handle } from "../observer.ts";
import { confusable } from "./naming.ts";
import type { Ask, Party } from "./party.ts";
import { calmMark, calmTtls, type Story, type Workload } from "./story.ts";
import { work } from "./work.ts";

const permits = 3;

/** A name for each stretch of the calm opening, so that the search for an order of what happened stays small. */
const calmStretchNs = 400_000_000n;

/** What users do while faults come. */
export const mixed: readonly Story[] = [
  {
    share: 40,
    tell: (load, me) =>
      me.section(busyName(load), patient(load), (handle) => work(load, handle)).then(() => {}),
  },
  {
    share: 30,
    tell: async (load, me) => {
      const handle = await me.ask(busyName(load), patient(load)).ended;
      await useAndGive(load, me, handle);
    },
  },
  {
    share: 12,
    tell: async (load, me) => {
      await useAndGive(load, me, await me.try(busyName(load), { mode: modeOf(load, 0.2), ttl: load.ttlMs }));
    },
  },
  {
    share: 10,
    needs: ({ counted }) => counted,
    tell: async (load, me) => {
      const { dice, prefix, ttlMs } = load;
      const name = `${prefix}a`;
      const asked = { permits, weight: dice.whole(1, 2) };
      const handle = dice.chance(0.4)
        ? await me.try(name, { ...asked, ttl: ttlMs })
        : await me.ask(name, { ...asked, ttl: ttlMs, wait: patienceOf(load) }).ended;
      await useAndGive(load, me, handle, true);
    },
  },
  { share: 8, tell: acquireBoth },
];

/** What users do in the calm opening, on names that stores confuse: there every answer has to be exact. */
export const calm: readonly Story[] = [
  {
    share: 30,
    tell: async (load, me) => {
      const { dice } = load;
      const metadata = dice.chance(0.5) ? `${dice.whole(0, 9)}`.repeat(dice.pick(1, 100, 4000)) : undefined;
      await restAndGive(
        load,
        me,
        await me.ask(calmName(load), { ...lasting(load), mode: modeOf(load, 0.4), metadata }).ended,
      );
    },
  },
  {
    share: 30,
    tell: async (load, me) => {
      await restAndGive(
        load,
        me,
        await me.try(calmName(load), { ...lasting(load), mode: modeOf(load, 0.4) }),
      );
    },
  },
  {
    share: 15,
    needs: ({ counted }) => counted,
    tell: async (load, me) => {
      const { dice } = load;
      const asked = { ...lasting(load), permits, weight: dice.whole(1, 2) };
      const name = calmName(load);
      await restAndGive(
        load,
        me,
        dice.chance(0.4) ? await me.try(name, asked) : await me.ask(name, asked).ended,
      );
    },
  },
  // Not more of them: each makes the search for an order of what happened longer.
  { share: 25, tell: (load) => lookAtQueue(load.locks, load.observer, calmName(load)) },
];

function busyName({ dice, prefix }: Workload): string {
  return `${prefix}${dice.pick("a", "b")}`;
}

function calmName({ dice, prefix }: Workload): string {
  const stretch = process.hrtime.bigint() / calmStretchNs;
  const pair = confusable[Number(stretch % BigInt(confusable.length))] ?? ["", ""];
  return `${prefix}${calmMark}${stretch}${dice.pick(...pair)}`;
}

function modeOf({ dice, locks }: Workload, sharedChance: number): LockMode {
  return locks.traits.shared && dice.chance(sharedChance) ? "shared" : "exclusive";
}

function patienceOf({ dice, ttlMs }: Workload): number | undefined {
  return dice.chance(0.25) ? dice.between(0, 3 * ttlMs) : undefined;
}

function patient(load: Workload): Ask {
  return { ttl: load.ttlMs, mode: modeOf(load, 0.2), wait: patienceOf(load) };
}

function lasting({ ttlMs }: Workload): Ask {
  return { ttl: calmTtls * ttlMs };
}

async function useAndGive(load: Workload, me: Party, handle: Handle | null, counted = false): Promise<void> {
  if (handle === null) return;
  await work(load, handle, counted);
  await me.give(handle);
}

async function restAndGive({ dice }: Workload, me: Party, handle: Handle | null): Promise<void> {
  if (handle === null) return;
  await sleep(dice.between(0, 40));
  await me.give(handle);
}

/** Two names at once: all or nothing. */
async function acquireBoth(load: Workload, me: Party): Promise<void> {
  const { prefix, ttlMs: ttl } = load;
  const { observer } = me;
  const names = [`${prefix}a`, `${prefix}b`];
  const wait = patienceOf(load);
  const attempts = names.map((name) => observer.ask("acquire", name, { ttl }));
  const set = await me.locks.acquire(names, { ttl, wait }).catch((error: unknown) => {
    for (const attempt of attempts) observer.refused("acquire", attempt, error, wait !== undefined);
    return null;
  });
  if (set === null) return;
  const handles = set.locks.map((lock, at) => observer.granted("acquire", attempts[at] ?? "", lock));
  for (const handle of handles) await work(load, handle);
  await me.giveAll(handles, () => set.release());
}
