/** Law 7: the store's clock expires entries, not before their ttl and not long after. */
import assert from "node:assert/strict";
import { type ContractCase, caseOf } from "../case.ts";
import { at, granted, idsIn } from "../look.ts";

const expiry = caseOf("expiry");

const dayMs = 86_400_000;

/** Cases about expiry. */
export const expiryCases: readonly ContractCase[] = [
  expiry("an entry that nobody renews expires", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    await t.append(a, queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    assert.deepEqual(await idsIn(b, queue), []);
  }),

  expiry("an entry does not expire before its ttl", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const ttlMs = 4 * t.pace.shortMs;
    await t.whileLive(async (live) => {
      const queue = t.name();
      live(ttlMs);
      const { self } = await t.append(a, queue, { ttlMs });
      await t.elapse(2.5 * t.pace.shortMs);
      assert.deepEqual(await idsIn(b, queue), [self.id]);
    });
  }),

  expiry("the remaining life is shown, never more than there is", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue, { ttlMs: 10_000 });
    assert.ok(self.expiresInMs <= 10_000 && self.expiresInMs > 8_000);
    assert.ok(at(await client.list(queue), 0).expiresInMs > 8_000);
    await t.elapse(t.pace.shortMs);
    const [shown] = await client.list(queue);
    assert.ok(shown !== undefined && shown.expiresInMs <= 10_000 - t.pace.shortMs / 2);
    assert.ok(shown.expiresInMs > 8_000 - t.pace.shortMs);
    assert.ok(shown.ageMs >= t.pace.shortMs / 2 && shown.ageMs < 8_000);
  }),

  expiry("an expired holder does not stand ahead of those behind it", ["order"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    await t.whileLive(async (live) => {
      const queue = t.name();
      const waiting = t.entry();
      live(t.pace.shortMs);
      await t.append(a, queue, { ttlMs: t.pace.shortMs });
      assert.ok(!granted(await t.append(b, queue, waiting)));
      live(Number.POSITIVE_INFINITY);
      await t.outliveShort();
      const said = await t.append(b, queue, waiting);
      assert.ok(granted(said));
      assert.deepEqual(await idsIn(b, queue), [waiting.id]);
    });
  }),

  expiry("an expired waiter between others stands in nobody's way", ["order"], async (t) => {
    const [a, b, c] = [await t.client(), await t.client(), await t.client()];
    const queue = t.name();
    const waiting = t.entry();
    const holder = await t.append(a, queue);
    await t.append(b, queue, { ttlMs: t.pace.shortMs });
    await t.append(c, queue, waiting);
    await t.outliveShort();
    const said = await t.append(c, queue, waiting);
    assert.equal(said.ahead.nearest?.id, holder.self.id);
    assert.deepEqual(await idsIn(a, queue), [holder.self.id, waiting.id]);
    await a.remove(queue, holder.self.id);
    assert.ok(granted(await t.append(c, queue, waiting)));
  }),

  // Hazard 39: a delay above 2^31 ms fires at once.
  expiry("an entry with a ttl of 30 days does not expire at once", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue, { ttlMs: 30 * dayMs });
    await t.elapse(t.pace.shortMs);
    const shown = at(await client.list(queue), 0);
    assert.equal(shown.id, self.id);
    assert.ok(shown.expiresInMs > 29 * dayMs && shown.expiresInMs <= 30 * dayMs);
  }),
];
