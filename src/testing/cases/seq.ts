/** Law 5: seq, the fencing token, is a bigint that never goes back. */
import assert from "node:assert/strict";
import type { Backend } from "../../core/backend.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at, times } from "../look.ts";
import type { Stage } from "../stage.ts";

const seq = caseOf("seq");

/** Appends and, if told so, removes, several times from clients in turn; each seq must be above all before. */
async function growing(t: Stage, clients: readonly Backend[], leave: boolean): Promise<void> {
  const queue = t.name();
  let highest = 0n;
  for (let turn = 0; turn < 12; turn++) {
    const client = at(clients, turn % clients.length);
    const { self } = await t.append(client, queue);
    assert.ok(self.seq > highest, `seq ${self.seq} after ${highest}`);
    highest = self.seq;
    if (leave) await client.remove(queue, self.id);
  }
}

/** Cases about seq. */
export const seqCases: readonly ContractCase[] = [
  // Hazard 12: tokens may pass 2^53.
  seq("seq is a bigint wherever an entry is shown", ["order"], async (t) => {
    const client = await t.client();
    const queue = t.name();
    const first = await t.append(client, queue);
    const second = await t.append(client, queue);
    const shown = [first.self, second.self, second.ahead.nearest, ...(await client.list(queue))];
    assert.deepEqual(new Set(shown.map((entry) => typeof entry?.seq)), new Set(["bigint"]));
    assert.equal(second.ahead.nearest?.seq, first.self.seq);
    assert.deepEqual(
      (await client.list(queue)).map((entry) => entry.seq),
      [first.self.seq, second.self.seq],
    );
  }),

  seq("seq grows in a queue, whichever client appends", ["tokens", "order"], async (t) => {
    await growing(t, await times(3, () => t.client()), false);
  }),

  // Hazards 11, 32.
  seq("seq grows over a queue that was empty in between", ["tokens"], async (t) => {
    await growing(t, await times(2, () => t.client()), true);
  }),

  seq("seq grows over an entry that was evicted", ["tokens"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const first = await t.append(a, queue);
    await b.remove(queue, first.self.id, true);
    const second = await t.append(b, queue);
    assert.ok(second.self.seq > first.self.seq);
  }),

  seq("seq grows over an entry that has expired", ["tokens"], async (t) => {
    const [a, b] = [await t.client(), await t.client()];
    const queue = t.name();
    const first = await t.append(a, queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    const second = await t.append(b, queue);
    assert.ok(second.self.seq > first.self.seq);
  }),

  seq("seq grows over a time in which the store had no client", ["tokens"], async (t) => {
    const queue = t.name();
    const before = await t.client();
    const first = await t.append(before, queue);
    await before.remove(queue, first.self.id);
    await t.closeAll();
    const second = await t.append(await t.client(), queue);
    assert.ok(second.self.seq > first.self.seq);
  }),
];
