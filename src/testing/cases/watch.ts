/** Law 6: who watches is told when its target leaves, also when that was before the watch stood; and only who has to know is told. */
import assert from "node:assert/strict";
import type { Backend, Entry, NewEntry, Snapshot } from "../../core/backend.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { aheadBy, at, granted, inShort, times } from "../look.ts";
import { copied, type Stage } from "../stage.ts";

const watch = caseOf("watch");

/** How long a wake-up that must not come is waited for, in milliseconds. */
const quietMs = 60;

/** How often somebody looks while the one ahead leaves. */
const lookingRounds = 10;

/** A waiter with a watch on an entry ahead. */
interface Watcher {
  readonly self: Entry;
  readonly entry: NewEntry;
  readonly client: Backend;
  /** What each call carried. */
  readonly calls: Array<Snapshot | undefined>;
  readonly unwatch: () => void;
}

/** Appends an entry from a client of its own and watches what the store says is the nearest (or nothing in particular). */
async function waiter(
  t: Stage,
  queue: string,
  changes: Partial<NewEntry> = {},
  targetOf: (said: Snapshot) => Entry | null = (said) => said.ahead.nearest,
): Promise<Watcher> {
  const [client, entry] = [await t.client(), t.entry(changes)];
  const said = await t.append(client, queue, entry);
  const calls: Array<Snapshot | undefined> = [];
  const unwatch = await client.watch(queue, said.self, targetOf(said), (fresh) => {
    calls.push(fresh === undefined ? undefined : copied(fresh));
  });
  return { self: said.self, entry, client, calls, unwatch };
}

const toWriter = (said: Snapshot): Entry | null => said.ahead.nearestWriter;

/** Cases about watch. */
export const watchCases: readonly ContractCase[] = [
  watch("a watcher is told when its target leaves", ["order"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const { self } = await t.append(holder, queue);
    const second = await waiter(t, queue);
    await holder.remove(queue, self.id);
    await t.eventually("the watcher is told", () => second.calls.length > 0);
  }),

  watch("a watcher is told when its target is evicted", ["order"], async (t) => {
    const queue = t.name();
    const { self } = await t.append(await t.client(), queue);
    const second = await waiter(t, queue);
    await (await t.client()).remove(queue, self.id, true);
    await t.eventually("the watcher is told", () => second.calls.length > 0);
  }),

  watch("a watcher is told when its target left before the watch stood", ["order"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const { self } = await t.append(holder, queue);
    const second = await waiter(t, queue, {}, (said) => {
      // The order matters, not the answer: remove is sent before watch.
      void Promise.resolve(holder.remove(queue, self.id)).catch(() => {});
      return said.ahead.nearest;
    });
    await t.eventually("the watcher is told", () => second.calls.length > 0);
  }),

  // The answer of a look and the word of a release may come by different ways: the older one last.
  watch("a watcher is told when its target leaves while it looks", ["order"], async (t) => {
    const holder = await t.client();
    for (let round = 0; round < lookingRounds; round++) {
      const queue = t.name();
      const { self } = await t.append(holder, queue);
      const second = await waiter(t, queue);
      const looking = t.append(second.client, queue, second.entry);
      const leaving = holder.remove(queue, self.id);
      const { ahead } = await looking;
      if (ahead.nearest === null) {
        await leaving;
        continue;
      }
      let told = 0;
      second.unwatch();
      await second.client.watch(queue, second.self, ahead.nearest, () => (told += 1));
      await leaving;
      await t.eventually("the watcher is told", () => told > 0);
    }
  }),

  watch("all watchers of one target are told", ["order", "shared"], async (t) => {
    const writer = await t.client();
    const queue = t.name();
    const { self } = await t.append(writer, queue);
    const readers = await times(4, () => waiter(t, queue, { mode: "read" }, toWriter));
    await writer.remove(queue, self.id);
    await t.eventually("all readers are told", () => readers.every(({ calls }) => calls.length > 0));
  }),

  // Hazard 35: a wake-up may be lost, but a look always finds the truth.
  watch("once its target has expired, a waiter is told or finds itself first", ["order"], async (t) => {
    const queue = t.name();
    await t.append(await t.client(), queue, { ttlMs: t.pace.shortMs });
    const second = await waiter(t, queue);
    await t.outliveShort();
    const found = await t.append(second.client, queue, second.entry);
    assert.ok(granted(found));
    assert.equal(found.self.seq, second.self.seq);
  }),

  watch("what a wake-up carries is what a listing shows", ["order", "shared"], async (t) => {
    const clients = await times(2, () => t.client());
    const queue = t.name();
    const [first, second, third] = [
      await t.append(at(clients, 0), queue, { mode: "read" }),
      await t.append(at(clients, 1), queue),
      await t.append(at(clients, 0), queue, { mode: "read" }),
    ];
    const last = await waiter(t, queue, { mode: "read" }, toWriter);
    await at(clients, 1).remove(queue, second.self.id);
    await t.eventually("the waiter is told", () => last.calls.length > 0);
    const reference = aheadBy(await last.client.list(queue), last.self.id);
    assert.equal(reference.count, 2, `${first.self.id} and ${third.self.id} are ahead`);
    for (const fresh of last.calls) {
      if (fresh === undefined) continue;
      assert.deepEqual(inShort(fresh.ahead), reference);
      assert.equal(fresh.self.seq, last.self.seq);
    }
  }),

  watch("a watch tells nobody that it is first while somebody is ahead", ["order"], async (t) => {
    const queue = t.name();
    await t.append(await t.client(), queue);
    const waiters = [await waiter(t, queue), await waiter(t, queue)];
    await t.elapse(quietMs);
    for (const { calls } of waiters) assert.ok(calls.every((fresh) => !fresh || !granted(fresh)));
  }),

  // Hazard 33: no thundering herd.
  watch("a hand-over of an exclusive lock wakes one waiter", ["order"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const { self } = await t.append(holder, queue);
    const waiters = await times(8, () => waiter(t, queue));
    await holder.remove(queue, self.id);
    await t.eventually("the first waiter is told", () => at(waiters, 0).calls.length > 0);
    await t.elapse(quietMs);
    const woken = waiters.filter(({ calls }) => calls.length > 0);
    assert.equal(woken.length, 1);
  }),

  watch("a watch that was ended is not called", ["order"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const { self } = await t.append(holder, queue);
    const second = await waiter(t, queue);
    second.unwatch();
    await holder.remove(queue, self.id);
    await t.elapse(quietMs);
    assert.deepEqual(second.calls, []);
  }),

  // Hazard 24: a waiter that died in the queue must not be told that it holds.
  watch("a waiter that was evicted is never told that it is first", ["order"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const { self } = await t.append(holder, queue);
    const dead = await waiter(t, queue);
    await holder.remove(queue, dead.self.id, true);
    await holder.remove(queue, self.id);
    await t.elapse(quietMs);
    assert.ok(dead.calls.every((fresh) => fresh === undefined || fresh.self.seq !== dead.self.seq));
  }),

  // Hazard 24.
  watch("a waiter that has expired is never told that it is first", ["order"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const { self } = await t.append(holder, queue);
    const dead = await waiter(t, queue, { ttlMs: t.pace.shortMs });
    await t.outliveShort();
    await holder.remove(queue, self.id);
    await t.elapse(quietMs);
    assert.ok(dead.calls.every((fresh) => fresh === undefined || fresh.self.seq !== dead.self.seq));
  }),

  watch("a waiter for permits is told when there is room for it", ["order", "counted"], async (t) => {
    const holder = await t.client();
    const queue = t.name();
    const permits = { mode: "read", permits: 4 } as const;
    const heavy = await t.append(holder, queue, { ...permits, weight: 3 });
    await t.append(holder, queue, { ...permits, weight: 1 });
    const third = await waiter(t, queue, { ...permits, weight: 2 }, () => null);
    await holder.remove(queue, heavy.self.id);
    await t.eventually("the waiter is told", () => third.calls.length > 0);
    assert.ok(granted(await t.append(third.client, queue, third.entry)));
  }),

  watch(
    "a waiter for permits is told of room that was made before the watch stood",
    ["order", "counted"],
    async (t) => {
      const holder = await t.client();
      const queue = t.name();
      const permits = { mode: "read", permits: 2 } as const;
      const { self } = await t.append(holder, queue, { ...permits, weight: 2 });
      const second = await waiter(t, queue, permits, () => {
        void Promise.resolve(holder.remove(queue, self.id)).catch(() => {});
        return null;
      });
      await t.eventually("the waiter is told", () => second.calls.length > 0);
    },
  ),
];
