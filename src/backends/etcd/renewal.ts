/** Renewing many entries at once: one keep-alive for each lease, then a look whether the entries are still there. */
import type { Renewal, Renewed } from "../../core/backend.ts";
import type { Init } from "./client/codec.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import type { RequestOp } from "./client/messages/txn.ts";
import { eventType, type WatchCreateRequest } from "./client/messages/watch.ts";
import * as methods from "./client/methods.ts";
import { saysEvicted } from "./entry-text.ts";
import type { Lease, OwnEntry } from "./lease.ts";
import { createdAt, createdExactlyAt } from "./steps.ts";
import { type EtcdStore, leftOf } from "./store.ts";

/** How long the history of a key is waited for, in milliseconds; it comes within a tenth of a second. */
const historyMs = 1_000;

/** What became of a keep-alive: false if the lease is gone, an error if nobody says. */
type Kept = boolean | { readonly cause: unknown };

/**
 * Renews. That a lease was prolonged says nothing about an entry, which somebody may have taken out; and some versions of
 * etcd prolong leases that they have revoked. So the look comes after it.
 */
export async function renewAll(store: EtcdStore, renewals: readonly Renewal[]): Promise<readonly Renewed[]> {
  const startedAt = store.clock.recent();
  const owns = renewals.map(({ queue, id, seq }) => {
    const own = store.own(queue, id);
    return own?.seq === seq ? own : undefined;
  });
  const told = owns.map((own) => own?.ended ?? null);
  if (!told.includes(null)) return renewals.map((_, index) => goneBy(store, owns[index], told[index]));
  const kept = await keepAll(store, new Set(owns.flatMap((own) => own?.lease ?? [])));
  const { found, term } = await lookAll(store, renewals, owns);
  tellDisplaced(
    store,
    renewals.filter((_, index) => found[index] === undefined),
  );
  const answers = renewals.map(async (renewal, index): Promise<Renewed> => {
    const kv = found[index];
    if (kv === undefined) return gone(store, renewal, owns[index]);
    const own = owns[index] ?? adopt(store, renewal, kv);
    const outcome = kept.get(own.lease) ?? (await keep(store, own.lease));
    if (outcome !== true) return { outcome: "unknown", cause: outcome === false ? undefined : outcome.cause };
    if (!store.leases.trusts(own.lease, term)) return { outcome: "unknown" };
    // It was there when we looked, but its deadline has passed since.
    if (own.expired) return { outcome: "gone" };
    store.leases.hold(own);
    return { outcome: "renewed", expiresInMs: leftOf(own, startedAt) };
  });
  const answered = await Promise.all(answers);
  return lengthen(store, renewals, answered, startedAt);
}

/** Those who wait join again in their order. */
function tellDisplaced(store: EtcdStore, missing: readonly Renewal[]): void {
  for (const { queue, seq } of missing.toSorted((one, other) => (one.seq < other.seq ? -1 : 1))) {
    store.watchOn(queue)?.displaced(seq);
  }
}

async function keepAll(store: EtcdStore, leases: ReadonlySet<Lease>): Promise<Map<Lease, Kept>> {
  const entries = [...leases].map(async (lease): Promise<[Lease, Kept]> => [lease, await keep(store, lease)]);
  return new Map(await Promise.all(entries));
}

function keep(store: EtcdStore, lease: Lease): Promise<Kept> {
  return store.leases.keep(lease).catch((cause: unknown) => ({ cause }));
}

/** For each renewal the key that it is about, if that is there and was created when the client thinks. */
async function lookAll(
  store: EtcdStore,
  renewals: readonly Renewal[],
  owns: readonly (OwnEntry | undefined)[],
): Promise<{ readonly found: readonly (KeyValue | undefined)[]; readonly term: bigint }> {
  const looks = renewals.map(({ queue, seq }, index): Init<RequestOp> => {
    const own = owns[index];
    const range = own === undefined ? createdExactlyAt(store.layout.entries(queue), seq) : keyOf(own);
    return { range: { ...range, keysOnly: true } };
  });
  const { responses, term } = await store.transactAll("a look at entries", looks, "read");
  const found = renewals.map(({ seq }, index) =>
    responses[index]?.range?.kvs.find(({ createRevision }) => createRevision === seq),
  );
  return { found, term };
}

function keyOf({ key }: OwnEntry): { readonly key: string } {
  return { key };
}

/** An entry of another client, or of an earlier life of this one, is from now on one of ours. */
function adopt(store: EtcdStore, { queue, id, seq, ttlMs }: Renewal, { key, lease }: KeyValue): OwnEntry {
  const keyText = Buffer.from(key).toString();
  return store.remember(queue, id, keyText, seq, store.leases.adopt(lease, ttlMs));
}

/** The store has told already that the entry has left, and how. */
function goneBy(store: EtcdStore, own: OwnEntry | undefined, how: OwnEntry["ended"] | undefined): Renewed {
  if (own !== undefined) store.forget(own);
  return { outcome: "gone", evicted: how === "evicted" };
}

async function gone(store: EtcdStore, renewal: Renewal, own: OwnEntry | undefined): Promise<Renewed> {
  const { queue, seq } = renewal;
  const ended = own?.ended ?? null;
  if (ended !== null) return goneBy(store, own, ended);
  if (own !== undefined) store.forget(own);
  const range = own === undefined ? store.layout.entries(queue) : keyOf(own);
  return { outcome: "gone", evicted: await wasEvicted(store, range, seq) };
}

/** Whether the entry that was created at this revision was marked before it was deleted, as far as the history goes back. */
function wasEvicted(store: EtcdStore, range: Init<WatchCreateRequest>, seq: bigint): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (evicted: boolean): void => {
      timer.cancel();
      resolve(evicted);
      void watching.then(
        (watch) => watch.cancel(),
        () => {},
      );
    };
    const timer = store.clock.after(historyMs, () => answer(false));
    const request = { ...range, startRevision: seq + 1n, prevKv: true };
    const watching = store.calls.client.watch(request, {
      created: () => {},
      events: (events) => {
        const deleted = events.find(
          ({ type, prevKv }) => type === eventType.delete && prevKv?.createRevision === seq,
        );
        if (deleted !== undefined) answer(saysEvicted(deleted.prevKv?.value));
      },
      ended: () => answer(false),
    });
    watching.catch(() => answer(false));
  });
}

/** Entries that are to live longer than their lease allows move to another one. */
async function lengthen(
  store: EtcdStore,
  renewals: readonly Renewal[],
  answers: readonly Renewed[],
  startedAt: number,
): Promise<readonly Renewed[]> {
  const movers = renewals.flatMap(({ queue, id, seq, ttlMs }, index) => {
    const own = store.own(queue, id);
    const moves = own?.seq === seq && answers[index]?.outcome === "renewed" && ttlMs > own.lease.lifeMs;
    return moves ? [{ index, own, seq, ttlMs }] : [];
  });
  if (movers.length === 0) return answers;
  const lengthened = [...answers];
  const moves = movers.map(async ({ index, own, seq, ttlMs }) => {
    const lease = await store.leases.forTtl(ttlMs);
    await store.leases.freshen(lease);
    const { key } = own;
    const { succeeded } = await store.calls.write("a move to another lease", methods.transact, {
      compare: [createdAt(key, seq)],
      success: [{ put: { key, ignoreValue: true, lease: lease.id } }],
    });
    if (!succeeded || own.expired) return;
    store.move(own, lease);
    lengthened[index] = { outcome: "renewed", expiresInMs: leftOf(own, startedAt) };
  });
  // Whoever could not be moved lives as long as its present lease, as answered.
  await Promise.allSettled(moves);
  return lengthened;
}
