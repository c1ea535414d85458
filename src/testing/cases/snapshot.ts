/** Laws 2 and 4: what append says is ahead is what a listing shows, and a grant is never revoked. */
import assert from "node:assert/strict";
import type { Backend, NewEntry } from "../../core/backend.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { aheadBy, type AheadInShort, at, granted, inShort, times } from "../look.ts";
import { below, pick } from "../random.ts";
import type { Stage } from "../stage.ts";

const snapshot = caseOf("snapshot");

/** An entry of a lock's queue, where the store has shared locks of either mode; or one of a semaphore's queue. */
async function someone(t: Stage, kind: "lock" | "semaphore"): Promise<NewEntry> {
  if (kind === "semaphore") {
    const weight = t.random() < 0.2 ? 1_000_000 : 1 + below(t.random, 4);
    return t.entry({ mode: "read", weight, permits: 1_000_000 });
  }
  const { shared } = await t.traits();
  return t.entry({ mode: shared && t.random() < 0.6 ? "read" : "write" });
}

/** Fills a queue from several clients, takes some entries out, and compares one field for all that are left. */
async function compare(t: Stage, kind: "lock" | "semaphore", field: keyof AheadInShort): Promise<void> {
  const clients = await times(3, () => t.client());
  const queue = t.name();
  const entries: Array<{ entry: NewEntry; client: Backend }> = [];
  for (let turn = 0; turn < 24; turn++) {
    const [entry, client] = [await someone(t, kind), pick(t.random, clients)];
    const said = await t.append(client, queue, entry);
    const listed = aheadBy(await client.list(queue), entry.id);
    assert.equal(inShort(said.ahead)[field], listed[field], `${field} at the tail`);
    // Whoever waits looks again when the entry ahead would expire.
    const { nearest } = said.ahead;
    assert.ok(nearest === null || nearest.expiresInMs > 0, "the nearest has no life left, and stands ahead");
    entries.push({ entry, client });
    if (t.random() < 0.4) await client.remove(queue, pick(t.random, entries).entry.id);
  }
  const listing = await at(clients, 0).list(queue);
  for (const { entry, client } of entries) {
    if (!listing.some(({ id }) => id === entry.id)) continue;
    const said = await t.append(client, queue, entry);
    assert.equal(inShort(said.ahead)[field], aheadBy(listing, entry.id)[field], `${field} in the middle`);
  }
}

/** Cases about snapshots. */
export const snapshotCases: readonly ContractCase[] = [
  snapshot("append says how many are ahead", ["order"], (t) => compare(t, "lock", "count")),
  snapshot("append says which entry is the nearest ahead", ["order"], (t) => compare(t, "lock", "nearest")),
  snapshot("append says which writer is the nearest ahead", ["order", "shared"], (t) =>
    compare(t, "lock", "nearestWriter"),
  ),
  snapshot("append says how much weight is ahead", ["order", "counted"], (t) =>
    compare(t, "semaphore", "weight"),
  ),

  snapshot("a free lock is granted in one trip", [], async (t) => {
    const client = await t.client();
    const { ahead } = await t.append(client, t.name());
    assert.deepEqual(inShort(ahead), { count: 0, weight: 0, nearest: null, nearestWriter: null });
  }),

  snapshot("a grant is never revoked by what comes and goes", ["order"], async (t) => {
    const clients = await times(3, () => t.client());
    const queue = t.name();
    const live = new Map<string, NewEntry>();
    const holders = new Set<string>();
    for (let turn = 0; turn < 40; turn++) {
      const client = pick(t.random, clients);
      if (live.size > 3 && t.random() < 0.4) {
        const { id } = pick(t.random, [...live.values()]);
        await client.remove(queue, id);
        live.delete(id);
        holders.delete(id);
      } else {
        const entry = await someone(t, "lock");
        await t.append(client, queue, entry);
        live.set(entry.id, entry);
      }
      for (const [id, entry] of live) {
        const holds = granted(await t.append(client, queue, entry));
        assert.ok(holds || !holders.has(id), "an entry that held does not hold any more");
        if (holds) holders.add(id);
      }
    }
  }),

  // Hazard 41: a session that already has the lock must not get it again.
  snapshot("two entries of one client exclude each other", ["order"], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const first = await t.append(client, queue);
    const second = await t.append(client, queue);
    assert.ok(granted(first));
    assert.ok(!granted(second));
  }),

  snapshot("a reader is granted beside readers and behind no writer", ["order", "shared"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    assert.ok(granted(await t.append(a, queue, { mode: "read" })));
    assert.ok(granted(await t.append(b, queue, { mode: "read" })));
    assert.ok(!granted(await t.append(a, queue, { mode: "write" })));
    assert.ok(!granted(await t.append(b, queue, { mode: "read" })));
  }),
];
