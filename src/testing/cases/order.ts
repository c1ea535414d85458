/** Law 1: entries stand in commit order, and none ever appears ahead of a visible one. */
import assert from "node:assert/strict";
import { type ContractCase, caseOf } from "../case.ts";
import { at, idsIn, idsOf, times } from "../look.ts";

const order = caseOf("order");

/** Cases about the order of a queue. */
export const orderCases: readonly ContractCase[] = [
  order("concurrent appends of several clients stand in the order of their seq", ["order"], async (t) => {
    const clients = await times(3, () => t.client());
    const queue = t.name();
    const appends = Array.from({ length: 300 }, (_, turn) => t.append(at(clients, turn % 3), queue));
    const snapshots = await Promise.all(appends);
    const bySeq = snapshots.map(({ self }) => self).toSorted((a, b) => (a.seq < b.seq ? -1 : 1));
    const listed = await idsIn(at(clients, 0), queue);
    assert.deepEqual(listed, idsOf(bySeq));
    for (const { self, ahead } of snapshots) assert.equal(ahead.count, listed.indexOf(self.id));
  }),

  order("no entry ever appears ahead of a visible one", ["order"], async (t) => {
    const clients = await times(3, () => t.client());
    const looker = await t.client();
    const queue = t.name();
    const appends = [];
    let seen: string[] = [];
    const look = async (): Promise<void> => {
      const now = await idsIn(looker, queue);
      assert.deepEqual(now.slice(0, seen.length), seen);
      seen = now;
    };
    for (let turn = 0; turn < 30; turn++) {
      appends.push(t.append(at(clients, turn % 3), queue));
      await look();
    }
    await Promise.all(appends);
    await look();
    assert.equal(seen.length, 30);
  }),

  order("an append that has been answered is visible to all clients", [], async (t) => {
    const [writer, looker] = [await t.client(), await t.client()];
    const queue = t.name();
    const { self } = await t.append(writer, queue);
    assert.deepEqual(await idsIn(looker, queue), [self.id]);
    assert.deepEqual(await idsIn(writer, queue), [self.id]);
  }),

  order("calls of one client take effect in call order", ["order", "call order"], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const entries = Array.from({ length: 20 }, () => t.entry());
    await Promise.all(entries.map(async (entry) => client.append(queue, entry)));
    assert.deepEqual(
      await idsIn(client, queue),
      entries.map(({ id }) => id),
    );
  }),
];
