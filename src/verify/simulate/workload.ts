/** What the users of a simulated client do, by its dice: which locks they ask for, how, and when they give up. */
import type { Lock } from "../../core/lock.ts";
import type { LockMode, RequestOptions } from "../../core/options.ts";
import type { Handle, SimulatedClient } from "./client.ts";
import { work } from "./section.ts";

const names = ["a", "b"] as const;
const pool = "pool";

/** Runs one user: one operation after the other. */
export async function useLocks(client: SimulatedClient): Promise<void> {
  const { dice, host, scene } = client;
  client.users += 1;
  for (let left = scene.plan.operations; left > 0; left -= 1) {
    await host.sleep(dice.between(0, scene.plan.ttlMs * 0.4));
    await operate(client);
  }
  client.users -= 1;
}

function operate(client: SimulatedClient): Promise<void> {
  const { dice, scene } = client;
  if (scene.plan.steals && dice.chance(0.08)) return steal(client);
  const draw = dice.fraction();
  if (draw < 0.35) return section(client);
  if (draw < 0.5) return acquire(client);
  if (draw < 0.6) return sectionIfAvailable(client);
  if (draw < 0.7) return tryAcquire(client);
  if (draw < 0.85) return takePermits(client);
  if (draw < 0.92) return acquireBoth(client);
  return query(client);
}

/** Options for a request that may wait: bounds of all kinds, and a signal that somebody may abort. */
function patience(client: SimulatedClient): { options: RequestOptions; done: () => void; ttl: number } {
  const { dice, host, scene } = client;
  const { ttlMs, calm } = scene.plan;
  const ttl = Math.ceil(ttlMs * dice.pick(1, 1, 0.6));
  const wait = dice.chance(0.2) ? dice.pick(0, dice.between(0, 2 * ttlMs)) : undefined;
  const renew = calm || !dice.chance(0.1);
  const maxHold = !calm && dice.chance(0.08) ? dice.between(1, ttlMs) : undefined;
  const options = { ttl, renew, wait, maxHold };
  if (!dice.chance(0.25)) return { options, done: () => {}, ttl };
  const controller = new AbortController();
  const timer = host.after(dice.between(0, ttlMs), () => controller.abort());
  return { options: { ...options, signal: controller.signal }, done: () => timer.cancel(), ttl };
}

/** `request`: the release is the core's, and a loss is told when the callback has ended. */
async function section(client: SimulatedClient): Promise<void> {
  const { dice, locks } = client;
  const name = dice.pick(...names);
  const mode: LockMode = dice.chance(0.7) ? "exclusive" : "shared";
  const reentrant = dice.chance(0.15);
  const { options, done, ttl } = patience(client);
  const attempt = client.ask("acquire", name, { mode, ttl });
  await inSection(client, attempt, "acquire", reentrant, done, (callback) =>
    locks.request(name, { ...options, mode, reentrant }, callback),
  );
}

async function sectionIfAvailable(client: SimulatedClient): Promise<void> {
  const { dice, locks } = client;
  const name = dice.pick(...names);
  const mode: LockMode = dice.chance(0.7) ? "exclusive" : "shared";
  const attempt = client.ask("try", name, { mode });
  await inSection(
    client,
    attempt,
    "try",
    false,
    () => {},
    (callback) => locks.request(name, { ifAvailable: true, mode }, callback),
  );
}

async function steal(client: SimulatedClient): Promise<void> {
  const name = client.dice.pick(...names);
  const attempt = client.ask("acquire", name, { steal: true });
  await inSection(
    client,
    attempt,
    "acquire",
    false,
    () => {},
    (callback) => client.locks.request(name, { steal: true }, callback),
  );
}

/** What is known of a section once its request has settled. */
interface Passage {
  handle: Handle | null;
  /** The callback; the request may settle before it, if the lock is stolen. */
  body: Promise<void> | null;
  /** Whether the lock was surely held when the callback ended. */
  sure: boolean;
}

async function inSection(
  client: SimulatedClient,
  attempt: string,
  f: "acquire" | "try",
  reentrant: boolean,
  done: () => void,
  request: (callback: (lock: Lock | null) => Promise<void>) => Promise<void>,
): Promise<void> {
  const passage: Passage = { handle: null, body: null, sure: false };
  const pass = async (lock: Lock | null): Promise<void> => {
    done();
    if (lock === null) return client.busy(attempt);
    const handle = client.granted(f, attempt, lock);
    passage.handle = handle;
    await work(client, handle, reentrant);
    passage.sure = client.isSure(handle);
    client.leaves(handle);
  };
  let failed: unknown = null;
  try {
    await request((lock) => (passage.body = pass(lock)));
  } catch (error) {
    failed = error;
  }
  done();
  const { body } = passage;
  if (body === null) return client.refused(f, attempt, failed);
  await body;
  const { handle, sure } = passage;
  if (handle === null) return;
  client.left(handle, "unknown", failed === null ? undefined : client.explain(failed));
  if (failed === null && !sure) client.wasSureWrongly(handle);
}

/** `acquire` and `release`. */
async function acquire(client: SimulatedClient): Promise<void> {
  const { dice, locks } = client;
  const name = dice.pick(...names);
  const mode: LockMode = dice.chance(0.7) ? "exclusive" : "shared";
  const { options, done, ttl } = patience(client);
  const attempt = client.ask("acquire", name, { mode, ttl });
  await holding(client, attempt, "acquire", locks.acquire(name, { ...options, mode }), done);
}

async function tryAcquire(client: SimulatedClient): Promise<void> {
  const { dice, locks } = client;
  const name = dice.pick(...names);
  const mode: LockMode = dice.chance(0.7) ? "exclusive" : "shared";
  const attempt = client.ask("try", name, { mode });
  await holding(client, attempt, "try", locks.tryAcquire(name, { mode }));
}

async function takePermits(client: SimulatedClient): Promise<void> {
  const { dice, locks, scene } = client;
  const { permits } = scene.plan;
  const weight = dice.whole(1, 2);
  const semaphore = locks.semaphore(pool, permits);
  if (dice.chance(0.3)) {
    const attempt = client.ask("try", pool, { weight, permits });
    return holding(client, attempt, "try", semaphore.tryAcquire({ weight }));
  }
  const { options, done, ttl } = patience(client);
  const { wait, signal, renew } = options;
  const attempt = client.ask("acquire", pool, { weight, permits, ttl });
  return holding(client, attempt, "acquire", semaphore.acquire({ ttl, wait, signal, renew, weight }), done);
}

async function holding(
  client: SimulatedClient,
  attempt: string,
  f: "acquire" | "try",
  asked: Promise<Lock | null>,
  done: () => void = () => {},
): Promise<void> {
  let lock: Lock | null;
  try {
    lock = await asked;
  } catch (error) {
    return client.refused(f, attempt, error);
  } finally {
    done();
  }
  if (lock === null) return client.busy(attempt);
  const handle = client.granted(f, attempt, lock);
  await work(client, handle, false);
  await release(client, [handle], () => lock.release());
}

/** Two names at once: all or nothing. */
async function acquireBoth(client: SimulatedClient): Promise<void> {
  const { locks } = client;
  const { options, done, ttl } = patience(client);
  const { signal, wait } = options;
  const attempts = names.map((name) => client.ask("acquire", name, { ttl }));
  try {
    const set = await locks.acquire(names, { ttl, signal, wait });
    const handles = set.locks.map((lock, at) => client.granted("acquire", attempts[at] ?? "", lock));
    done();
    for (const handle of handles) await work(client, handle, false);
    await release(client, handles, () => set.release());
  } catch (error) {
    for (const attempt of attempts) client.refused("acquire", attempt, error);
  } finally {
    done();
  }
}

async function release(
  client: SimulatedClient,
  handles: readonly Handle[],
  call: () => Promise<"released" | "gone">,
): Promise<void> {
  for (const handle of handles) client.leaves(handle);
  let outcome: "released" | "gone" | "unknown";
  try {
    outcome = await call();
    // Of several, one that is gone does not say which.
    if (outcome === "gone" && handles.length > 1) outcome = "unknown";
  } catch (error) {
    client.explain(error);
    outcome = "unknown";
  }
  for (const handle of handles) client.left(handle, outcome);
}

async function query(client: SimulatedClient): Promise<void> {
  const asked = [...names, pool];
  const calls = new Map(asked.map((lock) => [lock, client.nextCall()]));
  client.pending += 1;
  for (const [lock, call] of calls) client.record({ f: "query", type: "invoke", lock, call });
  try {
    const { held, pending } = await client.locks.query();
    const tokens = (infos: typeof held, lock: string): bigint[] =>
      infos.filter(({ name }) => name === lock).map(({ token }) => token - client.scene.firstSeq);
    for (const [lock, call] of calls) {
      const [holders, waiters] = [tokens(held, lock), tokens(pending, lock)];
      client.record({ f: "query", type: "ok", lock, call, holders, waiters });
    }
  } catch (error) {
    const detail = client.explain(error);
    for (const [lock, call] of calls) client.record({ f: "query", type: "info", lock, call, detail });
  } finally {
    client.pending -= 1;
  }
}
