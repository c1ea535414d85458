/** Several locks together, and semaphores. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import type { LockSet } from "../../src/core/lock-set.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";
import { untyped } from "../helpers/untyped.ts";

describe("a set of locks", () => {
  it("is taken in sorted order, each name once", async () => {
    const { locks, backend } = rig();
    const set = await locks.acquire(["c", "a", "b", "a"]);
    expect(set.names).toEqual(["a", "b", "c"]);
    expect(backend.calls.map(({ queue }) => queue)).toEqual(["a", "b", "c"]);
  });

  it("has a token a name, and one signal", async () => {
    const { locks } = rig();
    const set = await locks.acquire(["a", "b"]);
    expect([...set.tokens.keys()]).toEqual(["a", "b"]);
    expect(set.signal).toBe(set.signal);
    expect([set.held, set.signal.aborted]).toEqual([true, false]);
  });

  it("is given back by release, last taken first", async () => {
    const { locks, backend } = rig();
    const set = await locks.acquire(["a", "b"]);
    backend.calls.length = 0;
    expect(await set.release()).toBe("released");
    expect(backend.calls.map(({ queue }) => queue)).toEqual(["b", "a"]);
  });

  it("says gone if one of them was", async () => {
    const { locks, entries, erase } = rig();
    const set = await locks.acquire(["a", "b"]);
    erase("a", (await entries("a"))[0]?.id ?? "");
    expect(await set.release()).toBe("gone");
    expect(await entries("b")).toEqual([]);
  });

  it("releases the others although one release fails", async () => {
    const { locks, backend, entries } = rig();
    const set = await locks.acquire(["a", "b"]);
    backend.hooks.remove = (send, queue) => (queue === "b" ? Promise.reject(new Error("reset")) : send());
    expect(await rejection(set.release())).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN", lock: "b" });
    expect(await entries("a")).toEqual([]);
  });

  it("is null from tryAcquire if one is busy, and nothing is kept", async () => {
    const { locks, other, entries } = rig();
    await other().locks.acquire("b");
    expect(await locks.tryAcquire(["a", "b"])).toBeNull();
    expect(await entries("a")).toEqual([]);
  });

  it("runs the callback with null under ifAvailable if one is busy, holding nothing", async () => {
    const { locks, other, entries } = rig();
    await other().locks.acquire("b");
    await locks.request(["a", "b"], { ifAvailable: true }, async (set) => {
      expect(set).toBeNull();
      expect(await entries("a")).toEqual([]);
    });
  });

  it("has one wait for all names", async () => {
    const { locks, other, clock, entries } = rig();
    const first = await other().locks.acquire("a");
    await other().locks.acquire("b");
    const set = track(locks.acquire(["a", "b"], { wait: "10s" }));
    await clock.advance(6_000);
    await first.release();
    await clock.advance(3_999);
    expect(set.status).toBe("pending");
    await clock.advance(1);
    expect(set.error).toMatchObject({ code: "LOCK_TIMEOUT", lock: "b" });
    await settle();
    expect(await entries("a")).toEqual([]);
  });

  it("gives back what it has when a later name fails", async () => {
    const { locks, backend, entries } = rig();
    const down = new LockError("LOCK_UNAVAILABLE", "down");
    backend.hooks.append = (send, queue) => (queue === "b" ? Promise.reject(down) : send());
    expect(await rejection(locks.acquire(["a", "b"]))).toBe(down);
    expect(await entries("a")).toEqual([]);
  });

  it("stops waiting for the rest when one that it has is lost", async () => {
    const { locks, other, clock, entries, erase } = rig();
    await other().locks.acquire("b", { ttl: "1h" });
    const set = track(locks.acquire(["a", "b"], { ttl: "10s" }));
    await settle();
    erase("a", (await entries("a"))[0]?.id ?? "");
    await clock.advance(5_000);
    expect(set.error).toMatchObject({ code: "LOCK_LOST", lock: "a" });
    expect(await entries("b")).toHaveLength(1);
  });

  it("aborts its signal when any of them is lost", async () => {
    const { locks, clock, entries, erase } = rig();
    const set = await locks.acquire(["a", "b"], { ttl: "10s" });
    const { signal } = set;
    erase("b", (await entries("b"))[0]?.id ?? "");
    await clock.advance(5_000);
    expect([signal.aborted, set.held]).toEqual([true, false]);
    expect(() => set.assertHeld()).toThrow(expect.objectContaining({ code: "LOCK_LOST", lock: "b" }));
  });

  it("never waits in a circle with another set", async () => {
    const { locks, other } = rig();
    const done = ["a b", "b a", "b a", "a b"].map((names, index) =>
      track((index % 2 === 0 ? locks : other().locks).request(names.split(" "), () => settle())),
    );
    for (let turn = 0; turn < 10; turn++) await settle();
    expect(done.map(({ status }) => status)).toEqual(Array<string>(4).fill("fulfilled"));
  });

  it("runs the callback while holding all, and gives its result", async () => {
    const { locks, entries } = rig();
    const result = await locks.request(["a", "b"], async () => [
      (await entries("a")).length,
      (await entries("b")).length,
    ]);
    expect(result).toEqual([1, 1]);
    expect([...(await entries("a")), ...(await entries("b"))]).toEqual([]);
  });

  it("rejects at once when a name is stolen, and keeps the others until its callback has ended", async () => {
    const { locks, other, entries } = rig();
    const gate = deferred();
    let set: LockSet | null = null;
    const section = track(
      locks.request(["a", "b", "c"], (taken) => {
        set = taken;
        return gate.promise;
      }),
    );
    for (let turn = 0; turn < 5; turn++) await settle();
    await other().locks.acquire("b", { steal: true });
    await settle();
    expect(section.error).toHaveProperty("name", "AbortError");
    expect(set!.locks.map(({ held }) => held)).toEqual([true, false, true]);
    expect([(await entries("a")).length, (await entries("c")).length]).toEqual([1, 1]);
    gate.resolve();
    for (let turn = 0; turn < 5; turn++) await settle();
    expect([...(await entries("a")), ...(await entries("c"))]).toEqual([]);
  });

  it("has given back all names when it rejects with the callback's error", async () => {
    const { locks, entries } = rig();
    const own = new Error("own");
    const failing = locks.request(["a", "b"], () => {
      throw own;
    });
    expect(await rejection(failing)).toBe(own);
    expect([...(await entries("a")), ...(await entries("b"))]).toEqual([]);
  });

  it("leaves nothing behind at a signal that outlives it", async () => {
    const { locks } = rig();
    const { signal } = new AbortController();
    for (let turn = 0; turn < 3; turn++) {
      await locks.request(["a", "b", "c"], { signal }, () => {});
      await (await locks.acquire(["a", "b", "c"], { signal })).release();
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
    // What Node keeps at a signal for others that follow it; Node 20 and 22 never take it away.
    const followers = Object.getOwnPropertySymbols(signal)
      .filter(({ description }) => description === "kDependantSignals")
      .map((symbol): unknown => Reflect.get(signal, symbol))
      .filter((each) => typeof each === "object" && each !== null);
    for (const each of followers) expect(each).toHaveProperty("size", 0);
  });

  it("rejects with the reason of a signal", async () => {
    const { locks, other, entries } = rig();
    await other().locks.acquire("b");
    const controller = new AbortController();
    const section = track(locks.request(["a", "b"], { signal: controller.signal }, () => {}));
    await settle();
    controller.abort("enough");
    await settle();
    expect(section.error).toBe("enough");
    expect(await entries("a")).toEqual([]);
  });

  it("is given back by await using", async () => {
    const { locks, entries } = rig();
    {
      await using set = await locks.acquire(["a", "b"]);
      expect(set.held).toBe(true);
    }
    expect(await entries("a")).toEqual([]);
  });
});

describe("a semaphore", () => {
  it("lets as many in as it has permits, and the next ones in order", async () => {
    const { locks } = rig();
    const pool = locks.semaphore("s", 2);
    const steps: string[] = [];
    const gates = [deferred(), deferred(), deferred(), deferred()];
    gates.forEach((gate, index) => {
      track(
        pool.request(async () => {
          steps.push(`+${index}`);
          await gate.promise;
        }),
      );
    });
    await settle();
    expect(steps).toEqual(["+0", "+1"]);
    gates[1]?.resolve();
    await settle();
    expect(steps).toEqual(["+0", "+1", "+2"]);
    gates[0]?.resolve();
    await settle();
    expect(steps).toEqual(["+0", "+1", "+2", "+3"]);
  });

  it("is not overtaken by light ones when a heavy one waits", async () => {
    const { locks } = rig();
    const pool = locks.semaphore("s", 3);
    const light = await pool.acquire();
    const heavy = track(pool.acquire({ weight: 3 }));
    const next = track(pool.acquire());
    await settle();
    expect([heavy.status, next.status]).toEqual(["pending", "pending"]);
    await light.release();
    await settle();
    expect([heavy.status, next.status]).toEqual(["fulfilled", "pending"]);
  });

  it("is another thing than the lock of the same name", async () => {
    const { locks } = rig();
    await locks.acquire("s");
    expect((await locks.semaphore("s", 1).acquire()).name).toBe("s");
  });

  it("gives null from tryAcquire when the permits are taken", async () => {
    const { locks } = rig();
    const pool = locks.semaphore("s", 2);
    await pool.acquire({ weight: 2 });
    expect(await pool.tryAcquire()).toBeNull();
    expect(await pool.request({ ifAvailable: true }, (permit) => permit)).toBeNull();
  });

  it("gives tokens that grow", async () => {
    const { locks } = rig();
    const pool = locks.semaphore("s", 2);
    const [one, two] = [await pool.acquire(), await pool.acquire()];
    expect(two.token).toBeGreaterThan(one.token);
  });

  it("refuses more than it has, since that would wait for ever", async () => {
    const { locks, backend } = rig();
    const error = await rejection(locks.semaphore("s", 2).acquire({ weight: 3 }));
    expect(error).toMatchObject({
      code: "LOCK_INVALID",
      message: 'weight is 3, but the semaphore "s" has 2 permits: it would wait for ever',
    });
    expect(backend.calls).toEqual([]);
  });

  it.each([[0], [-1], [1.5], [Number.NaN], [1_000_001], ["2"], [undefined]])(
    "cannot have %o permits",
    (permits) => {
      const { locks } = rig();
      expect(() => untyped(locks).semaphore("s", permits)).toThrow(
        expect.objectContaining({ name: "TypeError", code: "LOCK_INVALID" }),
      );
    },
  );

  it("checks its name", () => {
    const { locks } = rig();
    expect(() => locks.semaphore("-s", 1)).toThrow(DOMException);
  });

  it("ends a wait by time and by signal", async () => {
    const { locks, clock } = rig();
    const pool = locks.semaphore("s", 1);
    await pool.acquire();
    const timed = track(pool.acquire({ wait: "5s" }));
    const controller = new AbortController();
    const signalled = track(pool.request({ signal: controller.signal }, () => {}));
    controller.abort("enough");
    await clock.advance(5_000);
    expect(timed.error).toMatchObject({ code: "LOCK_TIMEOUT", lock: "s" });
    expect(signalled.error).toBe("enough");
  });
});
