/** Stories about what a lock is called and what is shown of it: names that stores confuse, texts for people, and what a store says it has. */
import { hasCode, LockError } from "../../../core/errors.ts";
import { lookAtQueue } from "../listing.ts";
import type { Party } from "./party.ts";
import type { Duet, Stage } from "./story.ts";

/** Names that a careless store takes for one: one of them is busy while the other is free. */
export const confusable: readonly (readonly [string, string])[] = [
  ["q", "Q"],
  ["é", "e\u0301"],
  ["ä", "ö"],
  ["s", "s "],
  ["p", "p/"],
  [":1", ":2"],
  ["1", "12"],
  ["*", "_"],
  [`${"x".repeat(200)}1`, `${"x".repeat(200)}2`],
];

/** The stories of this file. */
export const namings: readonly Duet[] = [
  { lastsMs: () => 1_000, tell: keepNamesApart },
  { lastsMs: () => 500, needs: ({ locks }) => locks.traits.counted, tell: keepPermitsApart },
  { lastsMs: () => 500, tell: showWhatWasAsked },
  { lastsMs: () => 500, tell: askForWhatThereIsNot },
  { lastsMs: () => 500, needs: ({ ownStore }) => ownStore, tell: useNamesOfObjects },
];

/** While one of a pair is held, the other is free. */
async function keepNamesApart({ me, other, name, longTtlMs: ttl }: Stage): Promise<void> {
  for (const pair of confusable) {
    const [first, second] = pair.map(name);
    const held = await me.try(first ?? "", { ttl });
    const free = await other.try(second ?? "", { ttl });
    await lookAtQueue(me.locks, me.observer, first ?? "");
    if (free !== null) await other.give(free);
    if (held !== null) await me.give(held);
  }
}

/** While all permits of a name are taken, the lock of that name is free. */
async function keepPermitsApart({ me, other, name, longTtlMs: ttl }: Stage): Promise<void> {
  const both = name("both");
  const taken = await me.try(both, { ttl, permits: 2, weight: 2 });
  const free = await other.try(both, { ttl });
  if (free !== null) await other.give(free);
  if (taken !== null) await me.give(taken);
}

/** A listing shows a holder as it has asked, with a text as long as texts may be. */
async function showWhatWasAsked({ me, name, longTtlMs: ttl }: Stage): Promise<void> {
  const lock = name("shown");
  const handle = await me.ask(lock, { ttl, metadata: "é".repeat(2_000) }).ended;
  if (handle === null) return;
  await lookAtQueue(me.locks, me.observer, lock);
  await me.give(handle);
}

/** Whoever says that it has no shared locks, or no semaphores, refuses them. */
async function askForWhatThereIsNot({ me, name, longTtlMs: ttl }: Stage): Promise<void> {
  const { locks, observer } = me;
  const { shared, counted } = locks.traits;
  const refuses = async (
    what: string,
    asked: Promise<{ release(): Promise<unknown> } | null>,
  ): Promise<void> => {
    const error: unknown = await asked.then(
      async (lock) => void (await lock?.release()),
      (failure: unknown) => failure,
    );
    if (!hasCode(error, "LOCK_UNSUPPORTED")) {
      observer.violate("A1", `${what} were granted by a store that says it has none`);
    }
  };
  if (!shared) await refuses("shared locks", locks.tryAcquire(name("none"), { mode: "shared", ttl }));
  if (!counted) await refuses("permits", locks.semaphore(name("none"), 2).tryAcquire({ ttl }));
}

/** Names that every object has. A store that cannot be reached at the moment refuses all names, which says nothing of these. */
export async function useNamesOfObjects({
  me,
  name,
  longTtlMs: ttl,
  object,
}: Pick<Stage, "me" | "name" | "longTtlMs" | "object">): Promise<void> {
  for (const lock of ["constructor", "__proto__", "toString"]) {
    if ((await holdBriefly(me, lock, ttl)) === null) continue;
    if ((await holdBriefly(me, name("plain"), ttl)) !== null) continue;
    const why = await holdBriefly(me, lock, ttl);
    if (why !== null) object("L3", `the name ${JSON.stringify(lock)} could not be used: ${why}`);
  }
}

/** Takes a lock and gives it back. Gives what went wrong; null if nothing did. */
async function holdBriefly({ locks }: Party, name: string, ttl: number): Promise<string | null> {
  try {
    const lock = await locks.acquire(name, { ttl });
    await lock.release();
    return null;
  } catch (error) {
    return error instanceof LockError ? error.message : String(error);
  }
}
