/** Stories about clients that close: what they held is free, others go on undisturbed, and what is closed stays closed. */
import { LockManager } from "../../../core/manager.ts";
import { hasCode } from "../../../core/errors.ts";
import { seeWaiting } from "./looking.ts";
import { Party } from "./party.ts";
import type { Duet, Stage, Workload } from "./story.ts";

/** Long enough that it does not end within the story by itself. */
function twinTtl({ ttlMs }: Workload): number {
  return Math.max(900, ttlMs);
}

/** The stories of this file. */
export const leavings: readonly Duet[] = [
  { lastsMs: () => 1_000, tell: closeWhileHolding },
  { lastsMs: (load) => 2 * twinTtl(load) + 500, tell: closeOneOfTwins },
];

/** A client closes while it holds: its waiter comes next, and so does whoever waits later on. */
async function closeWhileHolding(stage: Stage): Promise<void> {
  const { me, other, name, longTtlMs: ttl, join } = stage;
  const lock = name("closing");
  const guest = await join("guest");
  const held = await guest.ask(lock, { ttl }).ended;
  const waiting = other.ask(lock, { ttl });
  await seeWaiting(stage, lock, 1);
  if (held !== null) guest.observer.leaves(held);
  await guest.locks.close();
  if (held !== null) guest.observer.left(held, "unknown");
  const next = await waiting.ended;
  const last = me.ask(lock, { ttl });
  await seeWaiting(stage, lock, 1);
  if (next !== null) await other.give(next);
  const handle = await last.ended;
  if (handle !== null) await me.give(handle);
}

/**
 * Two LockManagers of one backend, of which one closes: the other's lock lives until its ttl is over, it is refused from
 * then on, and closes in peace.
 */
async function closeOneOfTwins({ load, me, name }: Stage): Promise<void> {
  const lock = name("twins");
  const ttl = twinTtl(load);
  const backend = await load.open();
  const [first, second] = [
    new LockManager(backend, { ttl }),
    new LockManager(backend, { ttl, label: "twin" }),
  ];
  const twin = new Party(second, me.observer.sibling("twin"));
  const held = await twin.ask(lock, { ttl }).ended;
  await first.close();
  const found = await me.try(lock, { ttl });
  if (found !== null) await me.give(found);
  if (held !== null) twin.observer.abandons(held);
  const refused = await second.tryAcquire(name("later")).then(
    () => null,
    (error: unknown) => error,
  );
  if (!hasCode(refused, "LOCK_CLOSED")) {
    me.observer.violate("L3", `on a backend that was closed, a request ended with ${String(refused)}`);
  }
  await second.close().catch((error: unknown) => {
    me.observer.violate("L3", `closing a second time failed with ${String(error)}`);
  });
}
