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
import { afterThoseAhead } from "./lines.ts";
import { takeOut } from "./removal.ts";
import * as steps from "./steps.ts";
import { type EtcdStore, shown } from "./store.ts";

/** How often an append is sent because its lease had gone. */
const leaseTries = 3;
/** How often permits are asked for without waiting, each time overtaken by somebody else. */
const permitTries = 10;

/** What an append says; "again" if something was found that has to be looked at anew. */
type Said = Snapshot | null | "again";

/** Puts an entry at the tail, or finds it, and says what is ahead; null if it would have to wait and does not want to. */
export async function append(store: EtcdStore, queue: string, asked: NewEntry): Promise<Snapshot | null> {
  const byPermits = asked.permits !== undefined && asked.onlyIfGranted === true;
  const join = byPermits ? putWithRoom : put;
  const taken = new Map<string, bigint>();
  for (;;) {
    const startedAt = store.clock.recent();
    const known = store.own(queue, asked.id);
    const looked = known?.seq == null ? null : store.lines.looks(queue, known.seq);
    let joining: Promise<Said>;
    try {
      const found = known === undefined ? null : await find(store, known, asked, startedAt);
      if (found !== null) return await unlessBlocked(store, queue, asked, found);
      if (known?.seq != null) await afterThoseAhead(store, queue, known.seq);
      joining = store.lines.inTurn(queue, () => join(store, queue, asked, taken, startedAt));
    } finally {
      looked?.();
    }
    const said = await joining;
    if (said !== "again") return said;
  }
}

/**
 * Where an entry is to be put: the first of its keys that nobody has, as far as is known. Where it was put before, and did
 * perhaps not arrive, it is put again.
 */
function choose(
  store: EtcdStore,
  queue: string,
  { id, mode }: NewEntry,
  taken: ReadonlyMap<string, bigint>,
): steps.Choice {
  const before = store.own(queue, id);
  const expected = new Map<string, bigint>();
  let first: string | undefined;
  for (const key of store.layout.keys(queue, id, mode)) {
    // What will be there cannot be compared yet, but it is not this one.
    if (store.isWanted(key, id)) continue;
    const other = store.ownAt(key);
    const seq = taken.get(key) ?? (other?.id === id ? 0n : (other?.seq ?? 0n));
    expected.set(key, seq);
    if (seq === 0n) first ??= key;
  }
  const again = before !== undefined && expected.get(before.key) === 0n ? before.key : undefined;
  const key = again ?? first;
  if (key === undefined) throw new Error("an entry has a key that nobody else has");
  return { key, expected };
}

async function put(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  taken: Map<string, bigint>,
  startedAt: number,
): Promise<Said> {
  const choice = choose(store, queue, asked, taken);
  const value = textOf(asked, store.clock.wallMs());
  const request = (leaseId: bigint): Init<TxnRequest> =>
    steps.putRequest(store.layout, queue, asked, choice, value, leaseId);
  const { answer, own } = await onLease(store, queue, asked, choice, request);
  if (own === null) return refused(store, queue, asked, choice, answer, taken);
  const ahead = steps.aheadOfTail(asked, answer.responses, store.show(queue));
  return ahead === null ? "again" : { self: store.showOwn(asked, own, startedAt), ahead };
}

/** Why an entry was not put: it is there, its keys are not as expected, or somebody blocks it. */
async function refused(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  choice: steps.Choice,
  answer: TxnResponse,
  taken: Map<string, bigint>,
): Promise<Said> {
  const { expected } = choice;
  const mayWait = asked.onlyIfGranted !== true;
  const { responses } = mayWait ? await lookAt(store, choice) : answer;
  const there = responses.flatMap(({ range }) => range?.kvs ?? []);
  const show = store.show(queue);
  const self = there.find((kv) => show(kv).id === asked.id);
  if (self !== undefined) return stands(store, queue, asked, self);
  for (const key of expected.keys()) taken.set(key, 0n);
  for (const { key, createRevision } of there) taken.set(Buffer.from(key).toString(), createRevision);
  const isAsExpected = Array.from(expected).every(([key, seq]) => taken.get(key) === seq);
  return isAsExpected && !mayWait ? null : "again";
}

function lookAt({ calls }: EtcdStore, choice: steps.Choice): Promise<TxnResponse> {
  return calls.read("a look at an entry", methods.transact, { success: steps.sights(choice) });
}

/**
 * Takes permits that are free: no comparison can add up weights, so 1. look, 2. join only if nobody has joined since; who
 * has left since does no harm. Whoever is overtaken each time joins, and leaves again if it has to wait.
 */
async function putWithRoom(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  taken: Map<string, bigint>,
  startedAt: number,
): Promise<Said> {
  const range = store.layout.entries(queue);
  const value = textOf(asked, store.clock.wallMs());
  for (let tries = 0; tries < permitTries; tries++) {
    const { header, kvs } = await store.calls.read("a look at a queue", methods.range, steps.inOrder(range));
    const entries = kvs.map(store.show(queue));
    const there = kvs[entries.findIndex(({ id }) => id === asked.id)];
    if (there !== undefined) return stands(store, queue, asked, there);
    const ahead = steps.aheadIn(entries);
    if (!ruleOf(asked).grants(asked, ahead)) return null;
    const choice = choose(store, queue, asked, taken);
    const request = (leaseId: bigint): Init<TxnRequest> =>
      steps.putBehind(range, header?.revision ?? 0n, choice, value, leaseId);
    const { answer, own } = await onLease(store, queue, asked, choice, request);
    if (own !== null) return { self: store.showOwn(asked, own, startedAt), ahead };
    const why = await refused(store, queue, asked, choice, answer, taken);
    // Overtaken, or a key was taken: either way the next look says more.
    if (why !== null && why !== "again") return why;
  }
  const joined = await put(store, queue, { ...asked, onlyIfGranted: false }, taken, startedAt);
  return joined === null || joined === "again" ? joined : unlessBlocked(store, queue, asked, joined);
}

/** What came of a transaction; `own` is null if it did not put the entry. */
interface Attempt {
  readonly answer: TxnResponse;
  readonly own: OwnEntry | null;
}

/** Sends a transaction that puts an entry on a lease; on another one, if that had gone. Others are kept off its key meanwhile. */
function onLease(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  choice: steps.Choice,
  request: (leaseId: bigint) => Init<TxnRequest>,
): Promise<Attempt> {
  return store.wanting(choice.key, asked.id, () => send(store, queue, asked, choice, request));
}

async function send(
  store: EtcdStore,
  queue: string,
  asked: NewEntry,
  { key }: steps.Choice,
  request: (leaseId: bigint) => Init<TxnRequest>,
): Promise<Attempt> {
  for (let tries = 1; ; tries++) {
    const lease = await store.leases.forTtl(asked.ttlMs);
    lease.joining += 1;
    try {
      const fresh = store.leases.freshen(lease);
      const answer = await store.changes.send({
        what: "an append",
        key,
        joins: queue,
        request: request(lease.id),
      });
      if (fresh !== null) await fresh;
      // If this fails too, the entry counts as expired, and is looked for again.
      const trusted = store.leases.trusts(lease, answer.header?.raftTerm ?? 0n);
      if (!trusted) await store.leases.keep(lease).catch(() => false);
      const seq = answer.header?.revision ?? 0n;
      const own = answer.succeeded ? store.remember(queue, asked.id, key, seq, lease) : null;
      return { answer, own };
    } catch (error) {
      if (isLeaseGone(error)) store.leases.lost(lease);
      else if (hasCode(error, "LOCK_OUTCOME_UNKNOWN")) doubt(store, queue, asked.id, key, lease);
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
function doubt(store: EtcdStore, queue: string, id: string, key: string, lease: Lease): void {
  store.leases.retire(lease);
  store.remember(queue, id, key, null, lease);
}

/** Where an entry stands that this client has put; null if it is not there, or not known to be. */
async function find(
  store: EtcdStore,
  own: OwnEntry,
  asked: NewEntry,
  startedAt: number,
): Promise<Snapshot | null> {
  const { queue, key, seq } = own;
  if (own.until <= store.clock.now()) await store.expire([own]);
  if (seq === null) return null;
  const answer = await store.calls.read(
    "a look at a queue",
    methods.transact,
    steps.findRequest(store.layout, queue, asked, key, seq),
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
): Promise<Said> {
  const before = store.own(queue, asked.id);
  if (before?.expired) {
    // It is being taken out: what is there now is not for long.
    await store.expire([before]);
    return "again";
  }
  const lease = store.leases.find(leaseId);
  if (lease !== undefined) {
    store.remember(queue, asked.id, Buffer.from(key).toString(), seq, lease);
    return "again";
  }
  const answer = await store.calls.read(
    "a look at a queue",
    methods.transact,
    steps.findRequest(store.layout, queue, asked, key, seq),
  );
  if (!answer.succeeded) return "again";
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
