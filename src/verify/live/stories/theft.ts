/** Stories in which a lock is taken away, by a thief or by an operator: who has to hear of it, who comes next, and what stays as it was. */
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../../core/errors.ts";
import { seeNobody, seeTold, seeWaiting } from "./looking.ts";
import type { Handle } from "../observer.ts";
import type { Party } from "./party.ts";
import { type Duet, echoMark, ordered, type Stage, type Workload } from "./story.ts";

/** Short enough that a victim hears of it soon even if nobody tells it, since it renews. */
function shortTtl({ ttlMs }: Workload): number {
  return Math.max(900, ttlMs);
}

/** The stories of this file. */
export const thefts: readonly Duet[] = [
  { lastsMs: (load) => 2 * shortTtl(load) + 500, tell: stealOneOfThree },
  { lastsMs: (load) => 2 * shortTtl(load) + 500, tell: stealSection },
  { lastsMs: (load) => 2 * shortTtl(load) + 500, tell: releaseByForce },
  { lastsMs: (load) => 2 * shortTtl(load) + 500, tell: stealEchoed },
];

/**
 * One of three locks is stolen: its holder hears of it and of nothing else, the waiter behind it comes next, after the thief,
 * and nobody stays in the queue.
 */
async function stealOneOfThree(stage: Stage): Promise<void> {
  const { load, me, other, name, object } = stage;
  const ttl = shortTtl(load);
  const names = ["1", "2", "3"].map((word) => name(`stolen${word}`));
  const [lock = ""] = names.slice(1);
  const handles = await Promise.all(names.map((each) => me.ask(each, { ttl }).ended));
  const waiter: Party = load.dice.pick(me, other);
  const waiting = ordered(load) ? waiter.ask(lock, { ttl }) : null;
  if (waiting !== null) await seeWaiting(stage, lock, 1);
  // Until then it is surely the robbed one that holds, and nobody is granted but the thief.
  const surelyUntil = performance.now() + (handles[1]?.lock.validForMs ?? 0);
  const thief = await other.ask(lock, { ttl, steal: true }).ended;
  const robbedInTime = performance.now() < surelyUntil;
  await sleep(15);
  if (robbedInTime && thief?.lock.held && waiting?.granted?.lock.held) {
    object("M1", `${lock} was granted to a waiter while the thief held it`);
  }
  if (thief !== null) await other.give(thief);
  if (waiting !== null) await waiter.giveWhenGranted(waiting);
  const [before, robbed, after] = handles;
  if (robbed) {
    await seeTold(stage, robbed, ttl);
    await me.give(robbed);
  }
  // Whatever is said of the stolen one, the others are renewed with it.
  for (const handle of [before, after]) {
    if (!handle) continue;
    me.observer.seesHeld(handle);
    await me.give(handle);
  }
  await seeNobody(stage, names);
}

/** A section whose lock is stolen rejects at once with an AbortError, as the standard says. */
async function stealSection(stage: Stage): Promise<void> {
  const { load, me, other, name, object } = stage;
  const ttl = shortTtl(load);
  const lock = name("section");
  let enter = (_handle: Handle): void => {};
  const entered = new Promise<Handle>((resolve) => {
    enter = resolve;
  });
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const section = me.section(lock, { ttl }, (handle) => {
    enter(handle);
    return left;
  });
  const robbed = await Promise.race([entered, section.then(() => null)]);
  if (robbed === null) return;
  const thief = await other.ask(lock, { ttl, steal: true }).ended;
  if (thief !== null) await seeTold(stage, robbed, ttl);
  leave();
  const failed = await section;
  if (thief === null) return;
  await other.give(thief);
  // Where the store is slow, the ttl may have been over before anybody could tell it.
  const late = hasCode(failed, "LOCK_LOST") && /its ttl passed/.test(failed.message);
  if (!late && !(failed instanceof DOMException && failed.name === "AbortError")) {
    object("L3", `the section of ${lock} was stolen, and ended with ${String(failed)}`);
  }
}

/** An operator releases a lock by force, as `holdfast release --force` does: the waiter comes next, the holder hears of it. */
async function releaseByForce(stage: Stage): Promise<void> {
  const { load, me, other, name, longTtlMs: ttl } = stage;
  const lock = name("forced");
  const holder = me.ask(lock, { ttl });
  const held = await holder.ended;
  const waiting = other.ask(lock, { ttl });
  await seeWaiting(stage, lock, 1);
  const operator = await load.open();
  // Of a process that stood still the holder's entry may have expired: then the first is not the one that is meant.
  const first = (await operator.list(lock)).find(({ seq }) => seq === held?.lock.token);
  if (first !== undefined) {
    const about = { f: "evict", attempt: holder.attempt } as const;
    other.observer.record({ ...about, type: "invoke" });
    const removed = await operator.remove(lock, first.id, true, first.seq);
    other.observer.record({ ...about, type: removed ? "ok" : "fail" });
  }
  await operator.close();
  await other.giveWhenGranted(waiting);
  if (held === null) return;
  await seeTold(stage, held, ttl);
  await me.give(held);
}

/**
 * A lock is stolen whose request comes to the store twice, where a network does that: what the second leaves there is not
 * what was held, so that it can neither be renewed nor released.
 */
async function stealEchoed(stage: Stage): Promise<void> {
  const { load, me, other, name } = stage;
  const ttl = shortTtl(load);
  const lock = name(`${echoMark}stolen`);
  const held = await me.ask(lock, { ttl }).ended;
  const thief = await other.ask(lock, { ttl, steal: true }).ended;
  if (held !== null) {
    await seeTold(stage, held, ttl);
    await me.give(held);
  }
  if (thief !== null) await other.give(thief);
}
