/** Locks that are taken away or lost: steal, forced release, owners that die. */
import assert from "node:assert/strict";
import { hasCode } from "../../core/errors.ts";
import { type ContractCase, caseOf } from "../case.ts";
import { at } from "../look.ts";
import { request } from "../section.ts";
import { observe, type Stage } from "../stage.ts";

const loss = caseOf("loss");

/** Whoever is not told at once finds out with its next renewal: within the patience of the case. */
const toldByRenewal = (t: Stage): { ttl: number } => ({ ttl: t.pace.patienceMs });

/** Cases about losing a lock. */
export const lossCases: readonly ContractCase[] = [
  loss("steal grants at once, and the request it took from rejects with AbortError", [], async (t) => {
    const [a, b] = [await t.manager(), await t.manager()];
    const name = t.name();
    const victim = request(a, name, toldByRenewal(t));
    await t.eventually("the victim is entered", () => victim.entered);
    const lost = victim.lock;
    const thief = request(b, name, { steal: true });
    await t.eventually("the thief is entered", () => thief.entered);
    // The callback of the victim is still running: the rejection does not wait for it.
    const error = await t.failure("the victim's request rejects", victim.done.promise);
    assert.equal(Reflect.get(Object(error), "name"), "AbortError");
    assert.equal(lost?.held, false);
    assert.ok(lost !== null && thief.lock !== null);
    if ((await t.traits()).tokens !== null) assert.ok(thief.lock.token > lost.token);
    assert.equal(thief.lock.held, true);
    victim.leave();
    thief.leave();
    await t.within("the thief ends", thief.done.promise);
    await t.eventuallyClean(name);
  }),

  loss("waiters that a theft displaced go on", ["order"], async (t) => {
    const [a, b, c] = [await t.manager(), await t.manager(), await t.manager()];
    const name = t.name();
    const victim = request(a, name, toldByRenewal(t));
    await t.eventuallyHas(name, 1);
    const displaced = [request(b, name, toldByRenewal(t)), request(c, name, toldByRenewal(t))];
    await t.eventuallyHas(name, 3);
    const thief = request(c, name, { steal: true });
    await t.eventually("the thief is entered", () => thief.entered);
    await t.failure("the victim's request rejects", victim.done.promise);
    assert.ok(displaced.every(({ entered }) => !entered));
    for (const section of [victim, thief, ...displaced]) section.leave();
    await t.eventually("all end", () => displaced.every(({ done }) => done.state === "fulfilled"));
    await t.eventuallyClean(name);
  }),

  loss("a release by force is told to the holder, and the next is granted", ["order"], async (t) => {
    const [a, b, admin] = [await t.manager(), await t.manager(), await t.client()];
    const name = t.name();
    const lock = await t.within("it is granted", a.acquire(name, toldByRenewal(t)));
    const waiting = observe(b.acquire(name));
    await t.eventuallyHas(name, 2);
    assert.equal(await admin.remove(name, at(await admin.list(name), 0).id, true), true);
    const next = await t.within("the next is granted", waiting.promise);
    await t.eventually("the holder is told", () => lock.signal.aborted);
    assert.ok(hasCode(lock.signal.reason, "LOCK_LOST"));
    assert.ok(next.token > lock.token);
    assert.equal(await lock.release(), "gone");
    assert.equal(next.held, true);
    await next.release();
    await t.eventuallyClean(name);
  }),

  // Hazard 38: the next grant comes when the ttl of a dead owner ends.
  loss("the lock of an owner that died is granted after its ttl", ["order"], async (t) => {
    const [dead, locks] = [await t.client(), await t.manager()];
    const name = t.name();
    const begunAt = t.clock.now();
    const said = await t.append(dead, name, { ttlMs: t.pace.shortMs });
    await dead.close();
    const lock = await t.within("the waiter is granted", locks.acquire(name));
    // Clocks need not run alike to the last.
    const lived = t.clock.now() - begunAt >= 0.99 * t.pace.shortMs;
    assert.ok(lived, "it was granted before the ttl of the owner that died was over");
    assert.ok(lock.token > said.self.seq);
    await lock.release();
  }),

  loss("a lock that is held for long is renewed, and so are its waiters", ["order"], async (t) => {
    const [a, b, looker] = [await t.manager(), await t.manager(), await t.client()];
    const ttl = 3 * t.pace.shortMs;
    await t.whileLive(async (live) => {
      const name = t.name();
      // Whoever stands still for half a ttl may lose it: it is renewed each third.
      const renewed = (): void => live(ttl / 2);
      renewed();
      const holder = await t.within("it is granted", a.acquire(name, { ttl }));
      const waiting = observe(b.acquire(name, { ttl }));
      const seqs = async (): Promise<bigint[]> => {
        renewed();
        return (await looker.list(name)).map(({ seq }) => seq);
      };
      await t.eventually("2 entries in the queue", async () => (await seqs()).length === 2);
      const before = await seqs();
      for (let turn = 0; turn < 20; turn++) {
        await t.elapse(ttl / 8);
        assert.deepEqual(await seqs(), before);
      }
      assert.equal(holder.held, true);
      assert.equal(await holder.release(), "released");
      const next = await t.within("the waiter is granted", waiting.promise);
      assert.equal(next.token, before[1]);
      await next.release();
    });
  }),

  loss("closing a manager frees what it holds and leaves the queues", ["order"], async (t) => {
    const [a, b, c] = [await t.manager(), await t.manager(), await t.manager()];
    const name = t.name();
    const lock = await t.within("it is granted", a.acquire(name));
    const leaving = observe(b.acquire(name));
    await t.eventuallyHas(name, 2);
    const waiting = observe(c.acquire(name));
    await t.eventuallyHas(name, 3);
    await t.within("the waiter's manager closes", b.close());
    assert.ok(hasCode(await t.failure("the wait ends", leaving.promise), "LOCK_CLOSED"));
    await t.within("the holder's manager closes", a.close());
    assert.equal(lock.held, false);
    const next = await t.within("the last is granted", waiting.promise);
    await next.release();
    await t.eventuallyClean(name);
  }),
];
