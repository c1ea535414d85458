/** What a fleet needs beyond the standard: tokens, reentrancy, several names, semaphores. */
import assert from "node:assert/strict";
import type { Lock } from "../../core/lock.ts";
import type { LockManager } from "../../core/manager.ts";
import { semaphoreQueue } from "../../core/names.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at, times } from "../look.ts";
import { below } from "../random.ts";
import { Inside, request } from "../section.ts";
import { observe, type Stage } from "../stage.ts";

const fencing = caseOf("fencing");
const reentrancy = caseOf("reentrancy");
const several = caseOf("several names");
const semaphore = caseOf("semaphore");

/** Takes and gives back a lock from managers in turn; each token must be above the one before. */
async function tokensGrow(
  t: Stage,
  managers: readonly LockManager[],
  take: (locks: LockManager, turn: number) => Promise<Lock>,
): Promise<void> {
  let highest = 0n;
  for (let turn = 0; turn < 12; turn++) {
    const lock = await t.within("it is granted", take(at(managers, turn % managers.length), turn));
    assert.equal(typeof lock.token, "bigint");
    assert.ok(lock.token > highest, `token ${lock.token} after ${highest}`);
    highest = lock.token;
    assert.equal(await lock.release(), "released");
  }
}

/** Cases about tokens. */
export const fencingCases: readonly ContractCase[] = [
  fencing("tokens grow over the grants of two clients", ["tokens"], async (t) => {
    const managers = await times(2, () => t.manager());
    const name = t.name();
    await tokensGrow(t, managers, (locks) => locks.acquire(name));
  }),

  fencing("tokens grow across modes", ["tokens", "shared"], async (t) => {
    const managers = await times(2, () => t.manager());
    const name = t.name();
    await tokensGrow(t, managers, (locks, turn) =>
      locks.acquire(name, { mode: turn % 3 === 0 ? "exclusive" : "shared" }),
    );
  }),

  fencing("the token of a holder is the one that query shows", ["tokens", "order", "browsing"], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const name = t.name();
    const lock = await t.within("it is granted", a.acquire(name));
    const { held } = await b.query();
    assert.deepEqual(
      held.map(({ token }) => token),
      [lock.token],
    );
    await lock.release();
  }),
];

/** Cases about reentrancy. */
export const reentrancyCases: readonly ContractCase[] = [
  reentrancy("a nested request enters with the same token, and adds nothing to the queue", [], async (t) => {
    const [locks, looker] = [await t.manager({ reentrant: true }), await t.client()];
    const name = t.name();
    const nested = locks.request(name, async (outer) =>
      locks.request(name, async (inner) => {
        const entries = (await looker.list(name)).length;
        const same = inner.toJSON().token === outer.toJSON().token;
        return { same, held: inner.held, entries };
      }),
    );
    const expected = { same: true, held: true, entries: 1 };
    assert.deepEqual(await t.within("the nested request ends", nested), expected);
    await t.eventuallyClean(name);
  }),

  // Hazard 36.
  reentrancy(
    "parallel branches inside one section enter one at a time, and nobody else does",
    [],
    async (t) => {
      const [locks, other] = [await t.manager({ reentrant: true }), await t.manager()];
      const name = t.name();
      const inside = new Inside();
      let others = 0;
      const branch = (): Promise<void> =>
        locks.request(name, async () => {
          const leave = inside.enter(name, "exclusive");
          await t.dawdle();
          assert.equal(others, 0);
          leave();
        });
      // Asked for once the section is entered: of two clients, either may reach the store first.
      const compete = (): Promise<void> =>
        other.request(name, () => {
          others += 1;
        });
      const outer = locks.request(name, async () => {
        const competing = compete();
        await Promise.all(Array.from({ length: 5 }, branch));
        assert.equal(others, 0);
        return { competing };
      });
      const { competing } = await t.within("the section ends", outer);
      await t.within("the other enters", competing);
      assert.equal(others, 1);
      await t.eventuallyClean(name);
    },
  ),
];

/** Cases about several names in one request. */
export const severalCases: readonly ContractCase[] = [
  // Hazard 46.
  several(
    "requests for the same names in opposite orders do not wait for each other for ever",
    [],
    async (t) => {
      const managers = await times(3, () => t.manager());
      const names = [t.name("a"), t.name("b"), t.name("c")];
      const inside = new Inside();
      const requests = Array.from({ length: 12 }, (_, turn) =>
        at(managers, turn % 3).request(turn % 2 === 0 ? names : names.toReversed(), async (set) => {
          const leave = set.names.map((name) => inside.enter(name, "exclusive"));
          await t.dawdle();
          for (const each of leave) each();
          assert.deepEqual(set.names, names.toSorted());
        }),
      );
      await t.within("all end", Promise.all(requests));
      await t.eventuallyClean(...names);
    },
  ),

  several("several names are taken all or nothing", [], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const [first, second] = [t.name("a"), t.name("b")];
    const holder = request(a, second);
    await t.eventually("the holder is entered", () => holder.entered);
    const refused = await t.within("the answer comes", b.tryAcquire([first, second]));
    assert.equal(refused, null);
    await t.eventuallyHas(first, 0);
    const controller = new AbortController();
    const waiting = observe(b.acquire([second, first], { signal: controller.signal }));
    await t.eventuallyHas(first, 1);
    controller.abort(new Error("no more"));
    await t.failure("the wait ends", waiting.promise);
    await t.eventuallyHas(first, 0);
    holder.leave();
    await t.eventuallyClean(first, second);
  }),
];

/** Cases about semaphores. */
export const semaphoreCases: readonly ContractCase[] = [
  semaphore("permits are never exceeded, and all get theirs", ["counted"], async (t) => {
    const managers = await times(3, () => t.manager());
    const name = t.name();
    const permits = 5;
    let [used, most, served] = [0, 0, 0];
    const requests = Array.from({ length: 40 }, (_, turn) => {
      const weight = 1 + below(t.random, permits);
      return at(managers, turn % 3)
        .semaphore(name, permits)
        .request({ weight }, async () => {
          used += weight;
          most = Math.max(most, used);
          await t.dawdle();
          used -= weight;
          served += 1;
        });
    });
    await t.within("all end", Promise.all(requests));
    assert.ok(most <= permits, `${most} permits were in use`);
    assert.ok(most > 1, "permits were never used together");
    assert.equal(served, 40);
    await t.eventuallyClean(name, semaphoreQueue(name));
  }),

  semaphore("a heavy request is not overtaken by light ones", ["counted", "order"], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const name = t.name();
    const [pool, other] = [a.semaphore(name, 4), b.semaphore(name, 4)];
    const first = await t.within("it is granted", pool.acquire({ weight: 2 }));
    const heavy = observe(other.acquire({ weight: 3 }));
    await t.eventuallyHas(semaphoreQueue(name), 2);
    const light = observe(pool.acquire());
    await t.eventuallyHas(semaphoreQueue(name), 3);
    assert.equal(await t.within("the answer comes", other.tryAcquire()), null);
    assert.deepEqual([heavy.state, light.state], ["pending", "pending"]);
    await first.release();
    const both = await t.within("both are granted", Promise.all([heavy.promise, light.promise]));
    for (const permit of both) await permit.release();
    await t.eventuallyClean(semaphoreQueue(name));
  }),

  semaphore("a semaphore and a lock of the same name do not meet", ["counted"], async (t) => {
    const locks = await t.manager();
    const name = t.name();
    const lock = await t.within("the lock is granted", locks.acquire(name));
    const permit = await t.within("the permit is granted", locks.semaphore(name, 1).acquire());
    assert.ok(lock.held && permit.held);
    await lock.release();
    await permit.release();
  }),
];
