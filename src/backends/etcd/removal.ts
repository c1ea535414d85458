/** Leaving a queue: one delete that is guarded by the revision at which the entry was created. */
import { hasCode } from "../../core/errors.ts";
import type { KeyValue } from "./client/messages/kv.ts";
import * as methods from "./client/methods.ts";
import { evictedText } from "./entry-text.ts";
import * as steps from "./steps.ts";
import type { EtcdStore } from "./store.ts";

/** Takes an entry out; with a seq, only the one that has it. True if it was there. */
export async function takeOut(
  store: EtcdStore,
  queue: string,
  id: string,
  seq: bigint | undefined,
): Promise<boolean> {
  const own = store.own(queue, id);
  if (own === undefined || own.seq === null || (seq !== undefined && seq !== own.seq)) {
    return takeOutUnknown(store, queue, id, seq);
  }
  const wasExpired = own.until <= store.clock.now();
  const watch = store.watchOn(queue);
  const heir = watch?.heirOf(own.seq);
  const heirKey = heir && store.own(queue, heir.self.id)?.key;
  const { key } = own;
  // Whoever is next in this client need not ask whether its own entry is there: it is seen in the same moment.
  const success = heirKey === undefined ? [deletion(key)] : [deletion(key), sight(heirKey)];
  watch?.leaving(own.seq);
  store.guards.remove(own);
  try {
    const request = { compare: [steps.createdAt(key, own.seq)], success };
    const answer = await store.changes.send({ what: "a removal", key, joins: null, request });
    const seen = answer.responses[1]?.range?.kvs[0];
    store.forget(own);
    watch?.left(own.seq, seen !== undefined && seen.createRevision === heir?.self.seq ? heir : undefined);
    return answer.succeeded && !wasExpired;
  } catch (error) {
    watch?.stayed(own.seq);
    store.guards.add(own);
    throw error;
  }
}

/** Takes out an entry of which this client does not know whether or where it is. One that arrives later is swept away. */
async function takeOutUnknown(
  store: EtcdStore,
  queue: string,
  id: string,
  seq: bigint | undefined,
): Promise<boolean> {
  const kv = await look(store, queue, id, seq);
  if (kv === undefined) return false;
  const success = [steps.removal(kv.key, kv.createRevision)];
  const { responses } = await store.calls.write("a removal", methods.transact, { success });
  return steps.removed(responses) > 0;
}

/**
 * Takes out somebody else's entry, so that its owner can tell: 1. mark it, 2. delete it. The mark is read in the history of
 * the key, where nothing has to be cleaned up.
 */
export async function evict(
  store: EtcdStore,
  queue: string,
  id: string,
  seq: bigint | undefined,
): Promise<boolean> {
  const kv = await look(store, queue, id, seq);
  if (kv === undefined) return false;
  const { key } = kv;
  const value = evictedText(kv.value);
  if (value !== null) {
    const mark = { put: { key, value, ignoreLease: true } };
    const compare = [steps.createdAt(key, kv.createRevision)];
    try {
      await store.calls.write("an eviction", methods.transact, { compare, success: [mark] });
    } catch (error) {
      // A mark that may have been made does no harm; whether the entry leaves is decided below.
      if (!hasCode(error, "LOCK_OUTCOME_UNKNOWN")) throw error;
    }
  }
  const { responses } = await store.calls.write("an eviction", methods.transact, {
    compare: [steps.createdAt(key, kv.createRevision)],
    success: [deletion(key)],
  });
  store.watchOn(queue)?.left(kv.createRevision);
  return steps.removed(responses) > 0;
}

/** The entry with this id, and if a seq is given with that one. */
async function look(
  store: EtcdStore,
  queue: string,
  id: string,
  seq: bigint | undefined,
): Promise<KeyValue | undefined> {
  const entries = store.layout.entries(queue);
  const range = seq === undefined ? entries : steps.createdExactlyAt(entries, seq);
  const { kvs } = await store.calls.read("a look at an entry", methods.range, range);
  const show = store.show(queue);
  return kvs.find((kv) => show(kv).id === id);
}

function deletion<Key extends Uint8Array | string>(key: Key): { deleteRange: { key: Key } } {
  return { deleteRange: { key } };
}

function sight(key: string): { range: { key: string; keysOnly: true } } {
  return { range: { key, keysOnly: true } };
}
