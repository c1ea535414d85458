/** Laws 3 and 4: append is idempotent by id, and with a limit it refuses and leaves nothing behind. */
import assert from "node:assert/strict";
import { type ContractCase, caseOf } from "../case.ts";
import { granted, idsIn, rejectsWith } from "../look.ts";

const append = caseOf("append");

/** Cases about append. */
export const appendCases: readonly ContractCase[] = [
  // Hazards 16, 18, 30: after an unknown outcome a client asks again, and may have been heard twice.
  append("appended again, an entry keeps its place and its seq", ["order"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const entry = t.entry();
    const first = await t.append(a, queue, entry);
    const behind = await t.append(b, queue);
    const again = await t.append(a, queue, entry);
    assert.equal(again.self.seq, first.self.seq);
    assert.equal(again.self.id, entry.id);
    assert.equal(again.ahead.count, 0);
    assert.deepEqual(await idsIn(b, queue), [entry.id, behind.self.id]);
  }),

  append("appended again, an entry keeps its remaining life", [], async (t) => {
    const client = await t.client();
    const halfMs = t.pace.shortMs + t.pace.lagMs;
    await t.whileLive(async (live) => {
      const queue = t.name();
      const entry = t.entry({ ttlMs: 2 * halfMs });
      live(entry.ttlMs);
      await t.append(client, queue, entry);
      await t.elapse(halfMs);
      const { self } = await t.append(client, queue, entry);
      assert.ok(self.expiresInMs <= halfMs + t.pace.lagMs, `it has ${self.expiresInMs} ms left`);
      live(Number.POSITIVE_INFINITY);
      await t.elapse(halfMs + t.pace.lagMs / 2);
      assert.deepEqual(await idsIn(client, queue), []);
    });
  }),

  append("appended twice at once, an entry is there once", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const entry = t.entry();
    const [one, two] = await Promise.all([t.append(client, queue, entry), t.append(client, queue, entry)]);
    assert.equal(one.self.seq, two.self.seq);
    assert.deepEqual(await idsIn(client, queue), [entry.id]);
  }),

  append(
    "appended again after it has left, an entry joins at the tail with a new seq",
    ["order"],
    async (t) => {
      const [a, b] = [await t.client(), await t.client()];
      const queue = t.name();
      const entry = t.entry();
      const first = await t.append(a, queue, entry);
      const other = await t.append(b, queue);
      await b.remove(queue, entry.id, true);
      const again = await t.append(a, queue, entry);
      assert.ok(again.self.seq > other.self.seq && other.self.seq > first.self.seq);
      assert.deepEqual(await idsIn(b, queue), [other.self.id, entry.id]);
    },
  ),

  append("with onlyIfGranted a busy lock refuses, and the refused entry is nowhere", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const holder = await t.append(a, queue);
    for (let turn = 0; turn < 3; turn++) {
      assert.equal(await b.append(queue, t.entry({ onlyIfGranted: true })), null);
    }
    assert.deepEqual(await idsIn(a, queue), [holder.self.id]);
    await a.remove(queue, holder.self.id);
    assert.deepEqual(await idsIn(b, queue), []);
    assert.ok(granted(await t.append(b, queue, { onlyIfGranted: true })));
  }),

  append("with onlyIfGranted a free lock is granted, and found again", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const entry = t.entry({ onlyIfGranted: true });
    const first = await t.append(client, queue, entry);
    const again = await t.append(client, queue, entry);
    assert.ok(granted(first) && granted(again));
    assert.equal(again.self.seq, first.self.seq);
    if ((await t.traits()).order !== "fifo") return;
    await t.append(await t.client(), queue);
    const beforeOthers = await t.append(client, queue, entry);
    assert.equal(beforeOthers.self.seq, first.self.seq);
  }),

  append("with onlyIfGranted a lock whose holder has expired is granted", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    await t.append(a, queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    assert.ok(granted(await t.append(b, queue, { onlyIfGranted: true })));
  }),

  append("with onlyIfGranted a reader is refused behind a writer only", ["order", "shared"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const reader = await t.append(a, queue, { mode: "read" });
    for (const client of [b, a, b]) {
      assert.ok(granted(await t.append(client, queue, { mode: "read", onlyIfGranted: true })));
    }
    assert.equal(await b.append(queue, t.entry({ mode: "write", onlyIfGranted: true })), null);
    await t.append(a, queue, { mode: "write" });
    assert.equal(await b.append(queue, t.entry({ mode: "read", onlyIfGranted: true })), null);
    assert.equal((await idsIn(a, queue)).length, 5);
    assert.equal((await idsIn(a, queue))[0], reader.self.id);
  }),

  append("with onlyIfGranted permits are refused beyond their number only", ["counted"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const ask = { mode: "read", permits: 5, onlyIfGranted: true } as const;
    assert.ok(granted(await t.append(a, queue, { ...ask, weight: 3 })));
    assert.equal(await b.append(queue, t.entry({ ...ask, weight: 3 })), null);
    assert.ok(granted(await t.append(b, queue, { ...ask, weight: 2 })));
    assert.equal(await a.append(queue, t.entry({ ...ask, weight: 1 })), null);
    assert.equal((await idsIn(a, queue)).length, 2);
  }),

  append("a store without shared locks refuses readers", ["no shared"], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const ask = (): unknown => client.append(queue, t.entry({ mode: "read" }));
    await rejectsWith("LOCK_UNSUPPORTED", ask, "a reader");
    assert.deepEqual(await idsIn(client, queue), []);
  }),

  append("a store without semaphores refuses permits", ["no counted"], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const ask = (): unknown => client.append(queue, t.entry({ mode: "read", permits: 2 }));
    await rejectsWith("LOCK_UNSUPPORTED", ask, "an entry with permits");
    assert.deepEqual(await idsIn(client, queue), []);
  }),
];
