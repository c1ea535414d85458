/** Closing a client: every wait ends, every lock is lost by its signal first, nothing is left. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, hanging, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

describe("close", () => {
  it("rejects waits with LOCK_CLOSED and takes their entries out", async () => {
    const { locks, other, entries } = rig();
    await other().locks.acquire("a");
    const waiter = track(locks.acquire("a"));
    await locks.close();
    expect(waiter.error).toMatchObject({ code: "LOCK_CLOSED", lock: "a" });
    expect(await entries("a")).toHaveLength(1);
  });

  it("loses locks that are held: by the signal first, then in the store", async () => {
    const { locks, entries, backend } = rig();
    const lock = await locks.acquire("a");
    const steps: string[] = [];
    lock.signal.addEventListener("abort", () => steps.push("signal"));
    backend.hooks.remove = (send) => {
      steps.push("remove");
      return send();
    };
    await locks.close();
    expect(steps).toEqual(["signal", "remove"]);
    expect(lock.held).toBe(false);
    expect(lock.signal.reason).toHaveProperty(
      "message",
      expect.stringContaining("its LockManager was closed"),
    );
    expect(await entries("a")).toEqual([]);
  });

  it("makes a running section reject with LOCK_LOST", async () => {
    const { locks } = rig();
    const gate = deferred();
    const section = track(locks.request("a", () => gate.promise));
    await settle();
    await locks.close();
    gate.resolve();
    await settle();
    expect(section.error).toMatchObject({ code: "LOCK_LOST" });
  });

  it("rejects a request whose append is under way, and gives back what it brought", async () => {
    const { locks, backend, entries } = rig();
    const gate = deferred();
    backend.hooks.append = async (send) => {
      await gate.promise;
      return send();
    };
    const waiter = track(locks.acquire("a"));
    const closing = track(locks.close());
    await settle();
    expect([waiter.status, closing.status]).toEqual(["rejected", "pending"]);
    gate.resolve();
    await settle();
    expect(closing.status).toBe("fulfilled");
    expect(await entries("a")).toEqual([]);
  });

  it("rejects a grant that was not entered yet, and gives it back", async () => {
    const { locks, entries } = rig();
    const waiter = track(locks.acquire("a"));
    await locks.close();
    expect(waiter.error).toMatchObject({ code: "LOCK_CLOSED" });
    expect(await entries("a")).toEqual([]);
  });

  it("ends within bounds although the store hangs", async () => {
    const { locks, backend, clock } = rig();
    await locks.acquire("b");
    backend.hooks.append = () => hanging();
    backend.hooks.remove = () => hanging();
    track(locks.acquire("a"));
    const closing = track(locks.close());
    await clock.advance(4_000);
    expect(closing.status).toBe("fulfilled");
    expect(backend.count("close")).toBe(1);
  });

  it("refuses whatever comes after it", async () => {
    const { locks, backend } = rig();
    const semaphore = locks.semaphore("s", 2);
    await locks.close();
    backend.calls.length = 0;
    const attempts = [
      locks.acquire("a"),
      locks.tryAcquire("a"),
      locks.request("a", () => {}),
      locks.request(["a", "b"], () => {}),
      locks.acquire(["a", "b"]),
      locks.query(),
      semaphore.acquire(),
      semaphore.tryAcquire(),
      semaphore.request(() => {}),
    ];
    for (const attempt of attempts) {
      expect(await rejection(attempt)).toMatchObject({ code: "LOCK_CLOSED", backend: "memory" });
    }
    expect(backend.calls).toEqual([]);
  });

  it("happens once, however often it is called", async () => {
    const { locks, backend } = rig();
    await Promise.all([locks.close(), locks.close(), locks[Symbol.asyncDispose]()]);
    expect(backend.count("close")).toBe(1);
  });

  it("leaves no timer behind", async () => {
    const { locks, clock, other } = rig();
    const idle = clock.timers;
    const holder = other();
    await holder.locks.acquire("a");
    await locks.acquire("b");
    track(locks.acquire("a"));
    await locks.close();
    await holder.locks.close();
    await clock.advance(120_000);
    expect(clock.timers).toBe(idle);
  });
});
