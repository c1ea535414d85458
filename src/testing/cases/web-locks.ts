/** The Web Locks standard through a LockManager: modes, order, ifAvailable, signals and query. Stealing has a file of its own. */
import assert from "node:assert/strict";
import { hasCode } from "../../core/errors.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at, times } from "../look.ts";
import { request } from "../section.ts";
import { observe, type Observed } from "../stage.ts";

const webLocks = caseOf("web locks");

/** Cases about the standard's behaviour. */
export const webLocksCases: readonly ContractCase[] = [
  webLocks("a request runs its callback while it holds, and gives its result", [], async (t) => {
    const [locks, looker] = [await t.manager(), await t.client()];
    const name = t.name();
    const result = locks.request(name, async (lock) => {
      const holders = (await looker.list(name)).length;
      return { name: lock.name, mode: lock.mode, held: lock.held, holders };
    });
    const expected = { name, mode: "exclusive", held: true, holders: 1 };
    assert.deepEqual(await t.within("the request ends", result), expected);
    await t.eventuallyClean(name);
  }),

  webLocks("a callback's error comes out, and the lock is released", [], async (t) => {
    const locks = await t.manager();
    const name = t.name();
    const error = new Error("the callback's own");
    const failing = locks.request(name, async () => {
      throw error;
    });
    assert.equal(await t.failure("the request fails", failing), error);
    await t.eventuallyClean(name);
  }),

  webLocks("an exclusive request waits for the one before, of this client or another", [], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const name = t.name();
    const first = request(a, name);
    await t.eventually("the first is entered", () => first.entered);
    const others = [request(a, name), request(b, name)];
    await t.elapse(30);
    assert.deepEqual(
      others.map(({ entered }) => entered),
      [false, false],
    );
    for (const section of [first, ...others]) section.leave();
    await t.eventually("all end", () => others.every(({ done }) => done.state === "fulfilled"));
    await t.eventuallyClean(name);
  }),

  webLocks("requests of one client are granted in call order", ["order"], async (t) => {
    const locks = await t.manager();
    const name = t.name();
    const order: number[] = [];
    const requests = Array.from({ length: 12 }, (_, turn) => locks.request(name, () => order.push(turn)));
    await t.within("all end", Promise.all(requests));
    assert.deepEqual(
      order,
      order.map((_, turn) => turn),
    );
    assert.equal(order.length, 12);
  }),

  webLocks("requests of several clients are granted in the order of their arrival", ["order"], async (t) => {
    const managers = await times(3, () => t.manager());
    const name = t.name();
    const first = request(at(managers, 0), name);
    await t.eventually("the first is entered", () => first.entered);
    const order: number[] = [];
    const requests: Array<Observed<unknown>> = [];
    for (let turn = 0; turn < 9; turn++) {
      requests.push(observe(at(managers, (turn * 2) % 3).request(name, () => order.push(turn))));
      await t.eventuallyHas(name, turn + 2);
    }
    first.leave();
    await t.eventually("all end", () => requests.every(({ state }) => state === "fulfilled"));
    assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  }),

  webLocks(
    "readers hold together, a writer waits for them, and readers behind it wait for it",
    ["order", "shared"],
    async (t) => {
      const [a, b] = [await t.manager(), await t.manager()];
      const name = t.name();
      const readers = [request(a, name, { mode: "shared" }), request(b, name, { mode: "shared" })];
      await t.eventually("both readers are entered", () => readers.every(({ entered }) => entered));
      const writer = request(a, name);
      await t.eventuallyHas(name, 3);
      const behind = request(b, name, { mode: "shared" });
      await t.eventuallyHas(name, 4);
      at(readers, 0).leave();
      await t.elapse(30);
      assert.ok(!writer.entered && !behind.entered);
      at(readers, 1).leave();
      await t.eventually("the writer is entered", () => writer.entered);
      await t.elapse(30);
      assert.ok(!behind.entered);
      writer.leave();
      await t.eventually("the last reader is entered", () => behind.entered);
      behind.leave();
      await t.eventuallyClean(name);
    },
  ),

  webLocks("ifAvailable gives null when it is busy, and the lock when it is free", [], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const name = t.name();
    const holder = request(a, name);
    await t.eventually("the holder is entered", () => holder.entered);
    const busy = await t.within(
      "the answer comes",
      b.request(name, { ifAvailable: true }, (lock) => lock),
    );
    assert.equal(busy, null);
    assert.equal(await t.within("the answer comes", b.tryAcquire(name)), null);
    await t.eventuallyHas(name, 1);
    holder.leave();
    await t.within("the holder leaves", holder.done.promise);
    const free = await t.within("the answer comes", b.tryAcquire(name));
    assert.equal(free?.held, true);
    assert.equal(await free?.release(), "released");
    await t.eventuallyClean(name);
  }),

  webLocks("a wait that is over rejects with LOCK_TIMEOUT and leaves the queue", [], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const name = t.name();
    const holder = request(a, name);
    await t.eventually("the holder is entered", () => holder.entered);
    const ended = async (wait: number): Promise<unknown> => {
      const error = await t.failure("the wait ends", b.acquire(name, { wait }));
      // A store that did not answer meanwhile is told as such; then it is given more time.
      const slow = hasCode(error, "LOCK_UNAVAILABLE") && 2 * wait < t.pace.patienceMs;
      return slow ? ended(2 * wait) : error;
    };
    const error = await ended(t.pace.shortMs);
    assert.equal(Reflect.get(Object(error), "code"), "LOCK_TIMEOUT", String(error));
    await t.eventuallyHas(name, 1);
    holder.leave();
    await t.eventuallyClean(name);
  }),

  webLocks(
    "a signal aborted during the wait rejects with its reason, and the others go on",
    ["order"],
    async (t) => {
      const [a, b, c] = [await t.manager(), await t.manager(), await t.manager()];
      const name = t.name();
      const [reason, controller] = [{ why: "any value" }, new AbortController()];
      const holder = request(a, name);
      await t.eventuallyHas(name, 1);
      const aborted = request(b, name, { signal: controller.signal });
      await t.eventuallyHas(name, 2);
      const behind = request(c, name);
      await t.eventuallyHas(name, 3);
      controller.abort(reason);
      assert.equal(await t.failure("the request rejects", aborted.done.promise), reason);
      await t.eventuallyHas(name, 2);
      holder.leave();
      await t.eventually("the one behind is entered", () => behind.entered);
      assert.ok(!aborted.entered);
      behind.leave();
      await t.eventuallyClean(name);
    },
  ),

  webLocks("a signal aborted after the grant has no effect", [], async (t) => {
    const locks = await t.manager();
    const name = t.name();
    const controller = new AbortController();
    const section = request(locks, name, { signal: controller.signal });
    await t.eventually("it is entered", () => section.entered);
    controller.abort(new Error("after"));
    await t.elapse(30);
    assert.equal(section.lock?.held, true);
    section.leave();
    await t.within("the request ends", section.done.promise);
    await t.eventuallyClean(name);
  }),

  webLocks(
    "query shows who holds and who waits, with clientId, in request order",
    ["order", "browsing"],
    async (t) => {
      const [a, b, c] = [await t.manager(), await t.manager(), await t.manager()];
      const name = t.name();
      const sections = [request(a, name, { metadata: "nightly" })];
      await t.eventuallyHas(name, 1);
      for (const [turn, locks] of [c, b, a, c].entries()) {
        sections.push(request(locks, name));
        await t.eventuallyHas(name, turn + 2);
      }
      const { held, pending } = await b.query();
      assert.deepEqual(
        held.map((info) => [info.name, info.mode, info.clientId, info.token, info.metadata]),
        [[name, "exclusive", a.clientId, at(sections, 0).lock?.token, "nightly"]],
      );
      assert.deepEqual(
        pending.map(({ clientId }) => clientId),
        [c, b, a, c].map(({ clientId }) => clientId),
      );
      for (const section of sections) section.leave();
      await t.eventually("all end", () => sections.every(({ done }) => done.state === "fulfilled"));
      assert.deepEqual(await a.query(), { held: [], pending: [] });
    },
  ),
];
