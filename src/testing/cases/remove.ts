/** Leaving the queue and releasing are the same thing: remove takes out one entry, its own, once. */
import assert from "node:assert/strict";
import { type ContractCase, caseOf } from "../case.ts";
import { at, granted, idsIn, times } from "../look.ts";

const remove = caseOf("remove");

/** Cases about remove. */
export const removeCases: readonly ContractCase[] = [
  remove("remove takes an entry out and says so once", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(a, queue);
    assert.equal(await a.remove(queue, self.id), true);
    assert.deepEqual(await idsIn(b, queue), []);
    assert.equal(await a.remove(queue, self.id), false);
  }),

  remove("of several removes of one entry exactly one is true", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(a, queue);
    const answers = await Promise.all(
      [a, b, a, b].map(async (client, turn) => client.remove(queue, self.id, turn % 2 === 1)),
    );
    assert.equal(answers.filter(Boolean).length, 1);
  }),

  remove("remove of an id that is not there touches nothing", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(a, queue);
    assert.equal(await b.remove(queue, t.entry().id), false);
    assert.deepEqual(await idsIn(a, queue), [self.id]);
  }),

  remove("remove of an id that nobody can have takes nobody out of a line", ["order"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const line = await times(2, async () => (await t.append(a, queue)).self.id);
    for (const id of ["", "\0", at(line, 0).slice(0, -1)]) {
      for (const evict of [false, true]) {
        // Refused or not found: both will do.
        const removed = await Promise.resolve(b.remove(queue, id, evict)).catch(() => false);
        assert.deepEqual([removed, await idsIn(a, queue)], [false, line], JSON.stringify(id));
      }
    }
  }),

  remove("remove of an id in another queue touches neither queue", [], async (t) => {
    const client = await t.client();
    const [queue, other] = [t.name(), t.name()];
    const [here, there] = [await t.append(client, queue), await t.append(client, other)];
    assert.equal(await client.remove(queue, there.self.id), false);
    assert.deepEqual(await idsIn(client, queue), [here.self.id]);
    assert.deepEqual(await idsIn(client, other), [there.self.id]);
  }),

  // Hazard 19: the network delivers a release twice.
  remove("a late duplicate of a release does not hit the next holder", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const first = await t.append(a, queue);
    assert.equal(await a.remove(queue, first.self.id), true);
    const second = await t.append(b, queue);
    assert.equal(await a.remove(queue, first.self.id), false);
    assert.deepEqual(await idsIn(b, queue), [second.self.id]);
    assert.ok(granted(second));
  }),

  remove(
    "a hand-over takes the entry out, and tells who is next if the heir is gone",
    ["order", "hand-over"],
    async (t) => {
      const [owner, other] = [await t.client(), await t.client()];
      assert.ok(owner.handOver !== undefined);
      const queue = t.name();
      const first = await t.append(owner, queue);
      const heir = await t.append(owner, queue);
      const third = await t.append(other, queue);
      let told = false;
      await other.watch(queue, third.self, heir.self, () => {
        told = true;
      });
      assert.equal(await other.remove(queue, heir.self.id, true), true);
      assert.equal(await owner.handOver(queue, first.self.id, first.self.seq, heir.self.id), true);
      assert.deepEqual(await idsIn(other, queue), [third.self.id]);
      await t.eventually("who is next is told", () => told);
      assert.equal(await owner.handOver(queue, first.self.id, first.self.seq, heir.self.id), false);
    },
  ),

  remove("a hand-over leaves the heir in the queue, as its holder", ["order", "hand-over"], async (t) => {
    const [owner, other] = [await t.client(), await t.client()];
    assert.ok(owner.handOver !== undefined);
    const queue = t.name();
    const first = await t.append(owner, queue);
    const entry = t.entry();
    const heir = await t.append(owner, queue, entry);
    const third = await t.append(other, queue);
    assert.equal(await owner.handOver(queue, first.self.id, first.self.seq, heir.self.id), true);
    const again = await t.append(owner, queue, entry);
    assert.equal(again.self.seq, heir.self.seq);
    assert.ok(granted(again));
    // As late as a call that is sent twice: whoever has the seq is meant.
    assert.equal(await owner.handOver(queue, first.self.id, first.self.seq + 1n, heir.self.id), false);
    assert.deepEqual(await idsIn(other, queue), [heir.self.id, third.self.id]);
  }),

  remove("a late eviction does not hit an entry that joined again with the same id", [], async (t) => {
    const [owner, thief] = [await t.client(), await t.client()];
    const queue = t.name();
    const asked = t.entry();
    const before = await t.append(owner, queue, asked);
    assert.equal(await thief.remove(queue, asked.id, true, before.self.seq), true);
    await t.append(owner, queue, asked);
    assert.equal(await thief.remove(queue, asked.id, true, before.self.seq), false);
    assert.deepEqual(await idsIn(owner, queue), [asked.id]);
  }),

  remove("a late release does not hit an entry that joined again with the same id", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const asked = t.entry();
    const before = await t.append(client, queue, asked);
    assert.equal(await client.remove(queue, asked.id, false, before.self.seq), true);
    const after = await t.append(client, queue, asked);
    assert.equal(await client.remove(queue, asked.id, false, before.self.seq), false);
    assert.deepEqual(await idsIn(client, queue), [asked.id]);
    assert.equal(await client.remove(queue, asked.id, false, after.self.seq), true);
    assert.deepEqual(await idsIn(client, queue), []);
  }),

  remove("an entry that has expired cannot be removed any more", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    assert.equal(await client.remove(queue, self.id), false);
  }),

  remove("a waiter that leaves changes nothing for the others", ["order"], async (t) => {
    const clients = await times(3, () => t.client());
    const queue = t.name();
    const entries = await times(5, (turn) => t.append(at(clients, turn % 3), queue));
    const [a, b, c, d, e] = entries.map(({ self }) => self.id);
    assert.ok(c !== undefined);
    assert.equal(await at(clients, 2).remove(queue, c), true);
    assert.deepEqual(await idsIn(at(clients, 0), queue), [a, b, d, e]);
  }),
];
