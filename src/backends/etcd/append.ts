/** Joining a queue: one transaction where the lock is free, idempotent by the entry's id. */
import type { NewEntry, Snapshot } from "../../core/backend.ts";
import { hasCode } from "../../core/errors.ts";
import { ruleOf } from "../../core/grant.ts";
import { isLeaseGone } from "./calls.ts";
import type { Init } from "./client/codec.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import type { TxnRequest, TxnResponse } from "./client/messages/txn.ts";
import * as methods from "./client/methods.ts";
import { textOf } from "./entry-text.ts";
import type { Lease, OwnEntry } from "./lease.ts";
import { takeOut } from "./removal.ts";
import * as steps from "./steps.ts";
import { type EtcdStore, shown } from "./store.ts";

/** How often an append is sent because its lease had gone. */
const leaseTries = 3;
/** How often permits are asked for without waiting, each time overtaken by somebody else. */
const permitTries = 10;

/** Puts an entry at the tail, or finds it, and says what is ahead; null if it would have to wait and does not want to. */
export async function append(store: EtcdStore, queue: string, asked: NewEntry): Promise<Snapshot | null> {
  const startedAt = store.clock.recent();
  const known = store.own(queue, asked.id);
  if (known !== undefined) {
    if (known.until <= store.clock.now()) await store.expire([known]);
    const found = await find(store, known, asked, startedAt);
    if (found !== null) return unlessBlocked(store, queue, asked, found);
  }
  const byPermits = asked.permits !== undefined && asked.onlyIfGranted === true;
  return byPermits ? putWithRoom(store, queue, asked, startedAt) : put(store, queue, asked, startedAt);
}

async function put(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  startedAt: number,
): Promise<Snapshot | null> {
  const key = store.layout.key(queue, asked.id, asked.mode);
  const value = textOf(asked, store.clock.wallMs());
  const request = (leaseId: bigint): Init<TxnRequest> =>
    steps.putRequest(store.layout, queue, asked, Buffer.from(key), value, leaseId);
  const { answer, own } = await onLease(store, queue, asked, request);
  if (own === null) {
    const there = answer.responses[0]?.range?.kvs[0];
    return there === undefined ? null : stands(store, queue, asked, there);
  }
  const ahead = steps.aheadOfTail(asked, answer.responses, store.show(queue));
  if (ahead === null) return append(store, queue, asked);
  return { self: store.showOwn(asked, own, startedAt), ahead };
}

/**
 * Takes permits that are free: no comparison can add up weights, so 1. look, 2. join only if nobody has joined since; who
 * has left since does no harm. Whoever is overtaken each time joins, and leaves again if it has to wait.
 */
async function putWithRoom(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  startedAt: number,
): Promise<Snapshot | null> {
  const range = store.layout.entries(queue);
  const key = store.layout.key(queue, asked.id, asked.mode);
  const value = textOf(asked, store.clock.wallMs());
  for (let tries = 0; tries < permitTries; tries++) {
    const { header, kvs } = await store.calls.read("a look at a queue", methods.range, steps.inOrder(range));
    const there = kvs.find((kv) => Buffer.from(kv.key).toString() === key);
    if (there !== undefined) return stands(store, queue, asked, there);
    const ahead = steps.aheadIn(kvs.map(store.show(queue)));
    if (!ruleOf(asked).grants(asked, ahead)) return null;
    const request = (leaseId: bigint): Init<TxnRequest> =>
      steps.putBehind(range, header?.revision ?? 0n, Buffer.from(key), value, leaseId);
    const { own } = await onLease(store, queue, asked, request);
    if (own !== null) return { self: store.showOwn(asked, own, startedAt), ahead };
  }
  const joined = await put(store, queue, { ...asked, onlyIfGranted: false }, startedAt);
  return joined === null ? null : unlessBlocked(store, queue, asked, joined);
}

/** Sends a transaction that puts an entry on a lease; on another one, if that had gone. `own` is null if it did not put it. */
async function onLease(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  request: (leaseId: bigint) => Init<TxnRequest>,
): Promise<{ answer: TxnResponse; own: OwnEntry | null }> {
  for (let tries = 1; ; tries++) {
    const lease = await store.leases.forTtl(asked.ttlMs);
    lease.joining += 1;
    try {
      const fresh = store.leases.freshen(lease);
      const answer = await store.calls.write("an append", methods.transact, request(lease.id));
      if (fresh !== null) await fresh;
      // If this fails too, the entry counts as expired, and is looked for again.
      const trusted = store.leases.trusts(lease, answer.header?.raftTerm ?? 0n);
      if (!trusted) await store.leases.keep(lease).catch(() => false);
      const key = store.layout.key(queue, asked.id, asked.mode);
      const seq = answer.header?.revision ?? 0n;
      const own = answer.succeeded ? store.remember(queue, asked.id, key, seq, lease) : null;
      return { answer, own };
    } catch (error) {
      if (isLeaseGone(error)) store.leases.lost(lease);
      else if (hasCode(error, "LOCK_OUTCOME_UNKNOWN")) doubt(store, queue, asked, lease);
      if (!isLeaseGone(error) || tries === leaseTries) throw error;
    } finally {
      lease.joining -= 1;
      store.leases.release(lease);
    }
  }
}

/**
 * An append may still arrive when it has been taken back already. So its lease gets no new entries, and ends when those it
 * has now have left; until then what may have arrived is taken out more than once.
 */
function doubt(store: EtcdStore, queue: string, { id, mode }: NewEntry, lease: Lease): void {
  store.leases.retire(lease);
  store.remember(queue, id, store.layout.key(queue, id, mode), null, lease);
}

/** Where an entry stands that this client has put; null if it is not there, or not known to be. */
async function find(
  store: EtcdStore,
  own: OwnEntry,
  asked: NewEntry,
  startedAt: number,
): Promise<Snapshot | null> {
  const { queue, key, seq } = own;
  if (seq === null) return null;
  const answer = await store.calls.read(
    "a look at a queue",
    methods.transact,
    steps.findRequest(store.layout, queue, asked, Buffer.from(key), seq),
  );
  if (!answer.succeeded) {
    store.forget(own);
    return null;
  }
  const ahead = steps.aheadInMiddle(answer.responses, store.show(queue));
  return { self: store.showOwn(asked, own, startedAt), ahead };
}

/** Where an entry stands that was there before: put by an earlier try of ours, or by another client. */
async function stands(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  { key, createRevision: seq, lease: leaseId }: KeyValue,
): Promise<Snapshot | null> {
  const keyText = Buffer.from(key).toString();
  const lease = store.leases.find(leaseId);
  if (lease !== undefined) {
    store.remember(queue, asked.id, keyText, seq, lease);
    return append(store, queue, asked);
  }
  const answer = await store.calls.read(
    "a look at a queue",
    methods.transact,
    steps.findRequest(store.layout, queue, asked, Buffer.from(key), seq),
  );
  if (!answer.succeeded) return append(store, queue, asked);
  const ahead = steps.aheadInMiddle(answer.responses, store.show(queue));
  const self = shown(asked, seq, await store.lifeOf(leaseId));
  return unlessBlocked(store, queue, asked, { self, ahead });
}

/** What was found; but one that does not want to wait and has to is taken out. */
async function unlessBlocked(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  snapshot: Snapshot,
): Promise<Snapshot | null> {
  if (asked.onlyIfGranted !== true || ruleOf(asked).grants(asked, snapshot.ahead)) return snapshot;
  await takeOut(store, queue, asked.id, snapshot.self.seq);
  return null;
}
