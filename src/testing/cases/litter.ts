/** Law 9: nothing outlives its owner, neither in the store nor in the process; and a client that was closed is closed. */
import assert from "node:assert/strict";
import { isBrowsable } from "../../core/backend.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at, granted, idsIn, rejectsWith, times } from "../look.ts";

const litter = caseOf("litter");
const close = caseOf("close");

/** Cases about what is left behind. */
export const litterCases: readonly ContractCase[] = [
  litter("after releases nothing is left", [], async (t) => {
    const client = await t.client();
    const queues = await times(5, async () => t.name());
    const entries = await times(5, (turn) => t.append(client, at(queues, turn)));
    for (const [turn, queue] of queues.entries()) await client.remove(queue, at(entries, turn).self.id);
    await t.eventuallyClean(...queues);
  }),

  litter("after waiters have left, front to back or back to front, nothing is left", ["order"], async (t) => {
    const clients = await times(3, () => t.client());
    const queues = [t.name(), t.name()];
    for (const [turn, queue] of queues.entries()) {
      const entries = await times(9, (each) => t.append(at(clients, each % 3), queue));
      const leaving = turn === 0 ? entries : entries.toReversed();
      for (const { self } of leaving) assert.equal(await at(clients, 0).remove(queue, self.id), true);
    }
    await t.eventuallyClean(...queues);
  }),

  litter("after refusals nothing is left", [], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(a, queue);
    for (let turn = 0; turn < 5; turn++) await b.append(queue, t.entry({ onlyIfGranted: true }));
    await a.remove(queue, self.id);
    await t.eventuallyClean(queue);
  }),

  // Hazard 38: an owner that died without a word.
  litter("after expiry nothing is left", [], async (t) => {
    const queues = [t.name(), t.name()];
    for (const queue of queues) await t.append(await t.client(), queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    await t.eventuallyClean(...queues);
  }),

  litter("a watch leaves nothing when it is ended, and nothing when it was called", ["order"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const first = await t.append(a, queue);
    const second = await t.append(b, queue);
    let calls = 0;
    const ended = await b.watch(queue, second.self, second.ahead.nearest, () => {});
    const called = await b.watch(queue, second.self, second.ahead.nearest, () => {
      calls += 1;
    });
    ended();
    ended();
    await a.remove(queue, first.self.id);
    await t.eventually("the watch is called", () => calls > 0);
    called();
    await b.remove(queue, second.self.id);
    await t.eventuallyClean(queue);
  }),
];

/** Cases about closing a client. */
export const closeCases: readonly ContractCase[] = [
  close("calls after close reject with LOCK_CLOSED", [], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const { self } = await t.append(client, queue);
    await client.close();
    await rejectsWith("LOCK_CLOSED", () => client.append(queue, t.entry()), "append");
    await rejectsWith(
      "LOCK_CLOSED",
      () => client.renew([{ queue, id: self.id, seq: self.seq, ttlMs: 1_000 }]),
      "renew",
    );
    await rejectsWith("LOCK_CLOSED", () => client.remove(queue, self.id), "remove");
    await rejectsWith("LOCK_CLOSED", () => client.list(queue), "list");
    await rejectsWith("LOCK_CLOSED", () => client.watch(queue, self, null, () => {}), "watch");
    if (isBrowsable(client)) await rejectsWith("LOCK_CLOSED", () => client.queues(""), "queues");
  }),

  close("a client may be closed twice", [], async (t) => {
    const client = await t.client();
    await client.append(t.name(), t.entry());
    await Promise.all([client.close(), client.close()]);
    await client.close();
  }),

  close("entries of a closed client are left to their ttl", [], async (t) => {
    const [closing, other] = [await t.client(), await t.client()];
    const queue = t.name();
    const ttlMs = 2 * t.pace.shortMs;
    const { self } = await t.append(closing, queue, { ttlMs });
    await closing.close();
    assert.deepEqual(await idsIn(other, queue), [self.id]);
    assert.equal(await other.append(queue, t.entry({ onlyIfGranted: true })), null);
    await t.elapse(ttlMs + t.pace.lagMs);
    assert.ok(granted(await t.append(other, queue, { onlyIfGranted: true })));
  }),

  close("closing one client does not disturb another", ["order"], async (t) => {
    const [closing, other, holder] = [await t.client(), await t.client(), await t.client()];
    const queue = t.name();
    const first = await t.append(holder, queue);
    const second = await t.append(other, queue);
    let calls = 0;
    await other.watch(queue, second.self, second.ahead.nearest, () => {
      calls += 1;
    });
    await t.append(closing, queue);
    await closing.close();
    await holder.remove(queue, first.self.id);
    await t.eventually("the other client is told", () => calls > 0);
    assert.equal(await other.remove(queue, second.self.id), true);
  }),

  close("a closed client's watches are not called any more", ["order"], async (t) => {
    const [holder, closing] = [await t.client(), await t.client()];
    const queue = t.name();
    const first = await t.append(holder, queue);
    const second = await t.append(closing, queue);
    let calls = 0;
    await closing.watch(queue, second.self, second.ahead.nearest, () => {
      calls += 1;
    });
    await closing.close();
    await holder.remove(queue, first.self.id);
    await t.elapse(60);
    assert.equal(calls, 0);
  }),

  close("when all clients are closed nothing stays open", [], async (t) => {
    const clients = await times(3, () => t.client());
    const queue = t.name();
    const holder = await t.append(at(clients, 0), queue);
    await at(clients, 1).append(queue, t.entry({ onlyIfGranted: true }));
    await at(clients, 0).renew([{ queue, id: holder.self.id, seq: holder.self.seq, ttlMs: 10_000 }]);
    await at(clients, 2).list(queue);
    await at(clients, 0).remove(queue, holder.self.id);
    await t.closeAll();
    await t.eventuallyNoLitter();
  }),
];
