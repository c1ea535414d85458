/** Renewing extends a live entry and nothing else; it never brings one back. */
import assert from "node:assert/strict";
import { isBrowsable } from "../../core/backend.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at, idsIn, times } from "../look.ts";

const renew = caseOf("renew");

/** An answer that takes longer need not say why an entry is gone, in milliseconds. */
const slowMs = 500;

/** Cases about renew. */
export const renewCases: readonly ContractCase[] = [
  renew("a renewed entry outlives its first ttl", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const ttlMs = 2 * t.pace.shortMs;
    await t.whileLive(async (live) => {
      const queue = t.name();
      live(ttlMs);
      const { self } = await t.append(a, queue, { ttlMs });
      for (let turn = 0; turn < 6; turn++) {
        await t.elapse(t.pace.shortMs / 2);
        const [answer] = await a.renew([{ queue, id: self.id, seq: self.seq, ttlMs }]);
        assert.equal(answer?.outcome, "renewed");
        live(ttlMs);
      }
      assert.deepEqual(await idsIn(b, queue), [self.id]);
      live(Number.POSITIVE_INFINITY);
      await t.elapse(ttlMs + t.pace.lagMs);
      assert.deepEqual(await idsIn(b, queue), []);
    });
  }),

  renew("a renewal says how long the entry lives now", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue, { ttlMs: 10_000 });
    const [answer] = await client.renew([{ queue, id: self.id, seq: self.seq, ttlMs: 20_000 }]);
    assert.ok(answer?.outcome === "renewed");
    assert.ok(answer.expiresInMs <= 20_000 && answer.expiresInMs > 15_000);
    assert.ok(at(await client.list(queue), 0).expiresInMs > 15_000);
  }),

  renew("a waiter can be renewed, and keeps its place and its seq", ["order"], async (t) => {
    const [a, b, c] = [await t.client(), await t.client(), await t.client()];
    const ttlMs = 2 * t.pace.shortMs;
    await t.whileLive(async (live) => {
      const queue = t.name();
      const holder = await t.append(a, queue);
      live(ttlMs);
      const waiter = await t.append(b, queue, { ttlMs });
      const behind = await t.append(c, queue);
      await t.elapse(ttlMs / 4);
      await b.renew([{ queue, id: waiter.self.id, seq: waiter.self.seq, ttlMs: 4 * ttlMs }]);
      live(4 * ttlMs);
      await t.elapse(ttlMs + t.pace.lagMs);
      const list = await a.list(queue);
      assert.deepEqual(
        list.map(({ id, seq }) => ({ id, seq })),
        [holder, waiter, behind].map(({ self: { id, seq } }) => ({ id, seq })),
      );
    });
  }),

  renew("an entry that never was is gone", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const [answer] = await client.renew([{ queue, id: t.entry().id, seq: 1n, ttlMs: 1_000 }]);
    assert.equal(answer?.outcome, "gone");
    assert.deepEqual(await idsIn(client, queue), []);
  }),

  // Hazard 20: a renewal that races with the release.
  renew("a removed entry is gone, and a renewal does not bring it back", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue);
    await client.remove(queue, self.id);
    const [answer] = await client.renew([{ queue, id: self.id, seq: self.seq, ttlMs: 1_000 }]);
    assert.equal(answer?.outcome, "gone");
    assert.deepEqual(await idsIn(client, queue), []);
  }),

  renew("an expired entry is gone, and a renewal does not bring it back", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    const [answer] = await client.renew([{ queue, id: self.id, seq: self.seq, ttlMs: 1_000 }]);
    assert.equal(answer?.outcome, "gone");
    assert.deepEqual(await idsIn(client, queue), []);
  }),

  renew("a renewal of an entry that joined again later is not one of the new entry", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const asked = t.entry({ ttlMs: t.pace.shortMs });
    const before = await t.append(client, queue, asked);
    await t.outliveShort();
    const after = await t.append(client, queue, { ...asked, ttlMs: 10_000 });
    assert.ok(after.self.seq > before.self.seq);
    const answers = await client.renew([
      { queue, id: asked.id, seq: before.self.seq, ttlMs: 1_000 },
      { queue, id: asked.id, seq: after.self.seq, ttlMs: 1_000 },
    ]);
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ["gone", "renewed"],
    );
  }),

  renew("a batch is answered in its own order", [], async (t) => {
    const client = await t.client();
    const queues = await times(6, async () => t.name());
    const entries = await times(6, (turn) => t.append(client, at(queues, turn)));
    for (const turn of [1, 2, 4]) await client.remove(at(queues, turn), at(entries, turn).self.id);
    const renewals = entries.map(({ self }, turn) => ({
      queue: at(queues, turn),
      id: self.id,
      seq: self.seq,
      ttlMs: 70_000 + 10_000 * turn,
    }));
    const answers = await client.renew(renewals);
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ["renewed", "gone", "gone", "renewed", "gone", "renewed"],
    );
    answers.forEach((answer, turn) => {
      if (answer.outcome !== "renewed") return;
      const ttlMs = at(renewals, turn).ttlMs;
      assert.ok(answer.expiresInMs <= ttlMs && answer.expiresInMs > ttlMs - 5_000);
    });
    assert.deepEqual(await client.renew([]), []);
  }),

  renew("a batch of hundreds is answered in full", [], async (t) => {
    const client = await t.client();
    // As many as the core asks for at once.
    const queues = await times(500, async () => t.name());
    const entries = await Promise.all(queues.map((queue) => t.append(client, queue)));
    const renewals = entries.map(({ self }, turn) => ({
      queue: at(queues, turn),
      id: self.id,
      seq: self.seq,
      ttlMs: 90_000,
    }));
    const answers = await client.renew(renewals);
    assert.equal(answers.length, 500);
    assert.ok(answers.every(({ outcome }) => outcome === "renewed"));
    for (const turn of [0, 250, 499]) {
      assert.ok(
        at(await client.list(at(queues, turn)), 0).expiresInMs > 60_000,
        `entry ${turn} of the batch`,
      );
    }
    if (isBrowsable(client)) assert.deepEqual((await client.queues("")).toSorted(), queues.toSorted());
    await Promise.all(renewals.map(async ({ queue, id }) => client.remove(queue, id)));
  }),

  renew("an evicted entry is gone, and the answer says evicted", [], async (t) => {
    const [owner, other] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(owner, queue);
    await other.remove(queue, self.id, true);
    const [answer] = await owner.renew([{ queue, id: self.id, seq: self.seq, ttlMs: 1_000 }]);
    assert.ok(answer?.outcome === "gone");
    assert.equal(answer.evicted, true);
  }),

  // A client that waits for an answer may ask once more, and both may come to the store together.
  renew("the same renewal twice in one call is answered twice", [], async (t) => {
    const [owner, other] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(owner, queue);
    const renewal = { queue, id: self.id, seq: self.seq, ttlMs: 60_000 };
    const outcomes = async (): Promise<readonly string[]> =>
      (await owner.renew([renewal, { ...renewal, ttlMs: 50_000 }])).map(({ outcome }) => outcome);
    assert.deepEqual(await outcomes(), ["renewed", "renewed"]);
    await other.remove(queue, self.id, true);
    assert.deepEqual(await outcomes(), ["gone", "gone"]);
  }),

  // A store that looks for the entry, waits for the eviction and then sees what was there before it says no more than "gone".
  renew("an entry that is evicted while it is renewed hears that it was", [], async (t) => {
    const [owner, other] = [await t.client(), await t.client()];
    for (let round = 0; round < 20; round++) {
      const queue = t.name();
      const { self } = await t.append(owner, queue);
      const renewal = { queue, id: self.id, seq: self.seq, ttlMs: 60_000 };
      const begunAt = performance.now();
      const [[first], removed] = await Promise.all([
        owner.renew([renewal]),
        other.remove(queue, self.id, true),
      ]);
      assert.equal(removed, true);
      const [second] = await owner.renew([renewal]);
      // A store that takes its time to say why says at least that it is gone.
      if (performance.now() - begunAt > slowMs) continue;
      assert.deepEqual(first?.outcome === "gone" ? first : second, { outcome: "gone", evicted: true });
    }
  }),

  renew("an entry that left by itself is not called evicted", [], async (t) => {
    const client = await t.client();
    const [queue, other] = [t.name(), t.name()];
    const removed = await t.append(client, queue);
    const expired = await t.append(client, other, { ttlMs: t.pace.shortMs });
    await client.remove(queue, removed.self.id);
    await t.outliveShort();
    const answers = await client.renew([
      { queue, id: removed.self.id, seq: removed.self.seq, ttlMs: 1_000 },
      { queue: other, id: expired.self.id, seq: expired.self.seq, ttlMs: 1_000 },
    ]);
    for (const answer of answers) assert.ok(answer.outcome === "gone" && answer.evicted !== true);
  }),

  renew("a client that can be told of an eviction is told of its own entries only", [], async (t) => {
    const [owner, other] = [await t.client(), await t.client()];
    if (owner.onEvicted === undefined || other.onEvicted === undefined) return;
    const queue = t.name();
    const told: string[] = [];
    owner.onEvicted((where, id) => told.push(`owner ${where} ${id}`));
    other.onEvicted((where, id) => told.push(`other ${where} ${id}`));
    const { self } = await t.append(owner, queue);
    const left = await t.append(owner, queue);
    await owner.remove(queue, left.self.id);
    await other.remove(queue, self.id, true);
    await t.eventually("the owner is told", () => told.length > 0);
    // A hint may come twice: as a message, and in the answer to a client that asks what it has missed.
    assert.deepEqual([...new Set(told)], [`owner ${queue} ${self.id}`]);
  }),
];
