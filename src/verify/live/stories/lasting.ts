/** Stories about how long a lock lives: as long as was asked for, however many there are, and not longer. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../../core/errors.ts";
import { within } from "./looking.ts";
import { type Duet, echoMark, type Stage, type Workload } from "./story.ts";

const dayMs = 86_400_000;

/** More than twice as many as any store renews in one go without thinking of it: they may come to be renewed in two parts. */
const crowdSize = 520;

/** So long that a busy machine does not lose it. */
function plainTtl({ ttlMs }: Workload): number {
  return Math.max(1_500, ttlMs);
}

function isFirst({ place }: Workload): boolean {
  return place === 0;
}

/** The stories of this file. */
export const lastings: readonly Duet[] = [
  { lastsMs: (load) => plainTtl(load), tell: holdWithoutRenewal },
  { lastsMs: () => 500, needs: isFirst, tell: holdForMonths },
  { lastsMs: ({ ttlMs }) => 4 * ttlMs, needs: isFirst, late: true, tell: holdMany },
  {
    lastsMs: ({ ttlMs }) => 2 * ttlMs + 2_500,
    needs: ({ locks }) => locks.traits.expiry === "process",
    tell: forget,
  },
];

/** A lock that nobody renews is held for most of its ttl. */
async function holdWithoutRenewal({ load, me, name }: Stage): Promise<void> {
  const ttl = plainTtl(load);
  const handle = await me.ask(name("unrenewed"), { ttl, renew: false }).ended;
  if (handle === null) return;
  await sleep(0.65 * ttl);
  me.observer.seesHeld(handle);
  await me.give(handle);
}

/** A ttl that does not fit a 32-bit number of milliseconds: refused, or held. It is given back at once. */
async function holdForMonths({ me, name, object }: Stage): Promise<void> {
  try {
    const lock = await me.locks.acquire(name("months"), { ttl: 30 * dayMs });
    await sleep(20);
    if (!lock.held) object("L4", "a lock with a ttl of 30 days was lost at once");
    await lock.release();
  } catch (error) {
    if (!hasCode(error, "LOCK_INVALID")) object("L4", `a ttl of 30 days: ${String(error)}`);
  }
}

/** Hundreds of locks of one client: each renewal is answered. They are not recorded: there are many, and nobody else wants them. */
async function holdMany({ load, other, name, object }: Stage): Promise<void> {
  const ttl = 4 * load.ttlMs;
  const { clientId } = other.locks;
  let unanswered = 0;
  const hear = (message: unknown): void => {
    if (isUnknownRenewal(message, clientId)) unanswered += 1;
  };
  subscribe("holdfast:renew", hear);
  const names = Array.from({ length: crowdSize }, (_, place) => name(`many${place}`));
  const taken = await Promise.all(names.map((each) => other.locks.acquire(each, { ttl }).catch(() => null)));
  await sleep(0.4 * ttl);
  unsubscribe("holdfast:renew", hear);
  // Before they are released, which takes a while: soon there may be faults.
  if (unanswered > 0) {
    object("L4", `of ${crowdSize} locks, ${unanswered} renewals were not answered`);
  }
  await Promise.all(taken.map(async (lock) => lock?.release().catch(() => null)));
}

function isUnknownRenewal(message: unknown, client: string): boolean {
  if (typeof message !== "object" || message === null) return false;
  if (!("clientId" in message) || !("outcome" in message)) return false;
  return message.clientId === client && message.outcome === "unknown";
}

/** A lock that nobody renews and nobody gives back is free when its ttl is over, even if its request came twice. */
async function forget({ load, me, other, name, object }: Stage): Promise<void> {
  const lock = name(`${echoMark}forgotten`);
  const ttl = plainTtl(load);
  const held = await me.try(lock, { ttl, renew: false });
  if (held === null) return;
  me.observer.abandons(held);
  const waiting = other.ask(lock, { ttl });
  const next = await within(1.35 * ttl, waiting.ended);
  if (next === undefined) object("L1", `${lock} was not free long after its ttl`);
  const handle = await waiting.ended;
  if (handle !== null) await other.give(handle);
}
