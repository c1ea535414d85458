/** How a wait ends without a grant: by time, by signal, or because nobody wanted to wait. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { connect } from "../../src/connect.ts";
import { systemClock } from "../../src/core/clock.ts";
import { LockError } from "../../src/core/errors.ts";
import { LockManager } from "../../src/core/manager.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { block } from "../helpers/blocked-loop.ts";
import { Controlled } from "../helpers/controlled.ts";
import { hanging, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

describe("a signal whose reason is an error of ours", () => {
  it("ends the wait of an acquire with LOCK_ABORTED, and is its cause", async () => {
    const { locks, other } = rig();
    const [outer] = [await locks.acquire("a"), await other().locks.acquire("b")];
    const { signal } = outer;
    const [one, several] = [
      track(locks.acquire("b", { signal })),
      track(locks.acquire(["b", "c"], { signal })),
    ];
    await settle();
    await other().locks.acquire("a", { steal: true });
    await settle();
    const late = track(locks.acquire("b", { signal }));
    await settle();
    for (const { error } of [one, several, late]) {
      expect(error).toMatchObject({
        code: "LOCK_ABORTED",
        lock: "b",
        cause: { code: "LOCK_LOST", lock: "a" },
      });
    }
  });
});

describe("a wait that is over", () => {
  it("rejects with LOCK_TIMEOUT, which names the lock, the backend and who is ahead", async () => {
    const { locks, clock, other } = rig();
    await other({ label: "billing" }).locks.acquire("a");
    track(locks.acquire("a"));
    const waiter = track(locks.acquire("a", { wait: "5s" }));
    await clock.advance(4_999);
    expect(waiter.status).toBe("pending");
    await clock.advance(1);
    expect(waiter.error).toMatchObject({
      code: "LOCK_TIMEOUT",
      lock: "a",
      backend: "memory",
      retryable: true,
    });
    expect(waiter.error).toHaveProperty(
      "message",
      expect.stringMatching(
        /^lock "a" on memory: not granted within the wait of 5s: 2 ahead, the nearest is pid \d+ on \S+$/,
      ),
    );
  });

  it("shows the label of who is ahead", async () => {
    const { locks, clock, other } = rig();
    await other({ label: "billing" }).locks.acquire("a");
    const waiter = track(locks.acquire("a", { wait: "5s" }));
    await clock.advance(5_000);
    expect(waiter.error).toHaveProperty("message", expect.stringContaining('"billing", pid'));
  });

  it("takes its entry out of the queue", async () => {
    const { locks, clock, entries, other } = rig();
    await other().locks.acquire("a");
    track(locks.acquire("a", { wait: "5s" }));
    await clock.advance(5_000);
    expect(await entries("a")).toHaveLength(1);
  });

  it("rejects with LOCK_UNAVAILABLE if the store has never answered", async () => {
    const { locks, clock, backend } = rig();
    backend.hooks.append = () => hanging();
    const waiter = track(locks.acquire("a", { wait: "5s" }));
    await clock.advance(5_000);
    expect(waiter.error).toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: 'lock "a" on memory: the store has not answered within the wait of 5s',
    });
  });

  it("does not end a lock that was granted before", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { wait: "5s" });
    await clock.advance(60_000);
    expect(lock.held).toBe(true);
  });

  it("of 0 is one question, and LOCK_TIMEOUT if it is busy", async () => {
    const { locks, backend, other, entries } = rig();
    await other().locks.acquire("a");
    expect(await rejection(locks.acquire("a", { wait: 0 }))).toMatchObject({
      code: "LOCK_TIMEOUT",
      message: 'lock "a" on memory: it is busy, and the wait is 0',
    });
    expect(backend.calls.map(({ method }) => method)).toEqual(["append"]);
    expect(await entries("a")).toHaveLength(1);
  });

  it("of 0 gets a lock that is free", async () => {
    const { locks } = rig();
    expect((await locks.acquire("a", { wait: 0 })).held).toBe(true);
  });

  it("of Infinity never ends", async () => {
    const { locks, clock, other } = rig();
    const holder = await other().locks.acquire("a");
    const waiter = track(locks.acquire("a", { wait: Number.POSITIVE_INFINITY }));
    await clock.advance(86_400_000);
    expect(waiter.status).toBe("pending");
    await holder.release();
    await settle();
    expect(waiter.status).toBe("fulfilled");
  });
});

describe("tryAcquire", () => {
  it("gives null when it is busy, after one question, and leaves nothing behind", async () => {
    const { locks, backend, other, entries } = rig();
    await other().locks.acquire("a");
    expect(await locks.tryAcquire("a")).toBeNull();
    expect(backend.calls.map(({ method }) => method)).toEqual(["append"]);
    expect(await entries("a")).toHaveLength(1);
  });

  it("rejects when the store is broken: that is not busy", async () => {
    const { locks, backend } = rig();
    const down = new LockError("LOCK_UNAVAILABLE", "down");
    backend.hooks.append = () => Promise.reject(down);
    expect(await rejection(locks.tryAcquire("a"))).toBe(down);
  });

  it("asks again after an unknown outcome, and gets the lock that it had got", async () => {
    const { locks, backend, clock, entries } = rig();
    let appends = 0;
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      if (++appends === 1) throw new Error("reset");
      return snapshot;
    };
    const lock = track(locks.tryAcquire("a"));
    await clock.advance(1_000);
    expect(lock.value?.held).toBe(true);
    expect(await entries("a")).toHaveLength(1);
  });
});

describe("an aborted wait", () => {
  it("rejects acquire with LOCK_ABORTED and the signal's reason as its cause", async () => {
    const { locks, other, entries } = rig();
    await other().locks.acquire("a");
    const controller = new AbortController();
    const waiter = track(locks.acquire("a", { signal: controller.signal }));
    const reason = new Error("shutting down");
    controller.abort(reason);
    await settle();
    expect(waiter.error).toMatchObject({ code: "LOCK_ABORTED", cause: reason, lock: "a" });
    expect(await entries("a")).toHaveLength(1);
  });

  it("never asks the store if it was aborted before", async () => {
    const { locks, backend } = rig();
    const waiter = await rejection(locks.acquire("a", { signal: AbortSignal.abort() }));
    expect(waiter).toMatchObject({ code: "LOCK_ABORTED" });
    expect(backend.calls).toEqual([]);
  });

  it("gives back a grant that came in the same turn", async () => {
    const { locks, entries } = rig();
    const controller = new AbortController();
    const waiter = track(locks.acquire("a", { signal: controller.signal }));
    controller.abort();
    await settle();
    expect(waiter.status).toBe("rejected");
    expect(await entries("a")).toEqual([]);
  });

  it("listens no more once the lock is held", async () => {
    const { locks } = rig();
    const controller = new AbortController();
    const lock = await locks.acquire("a", { signal: controller.signal });
    controller.abort();
    expect([lock.held, lock.signal.aborted]).toEqual([true, false]);
  });

  it("tries again to give back what the store did not take back", async () => {
    const { locks, clock, backend, other, entries } = rig();
    await other().locks.acquire("a", { ttl: "1h" });
    const controller = new AbortController();
    track(locks.acquire("a", { signal: controller.signal, ttl: "1h" }));
    let removals = 0;
    backend.hooks.remove = (send) => (++removals < 3 ? Promise.reject(new Error("reset")) : send());
    controller.abort();
    await clock.advance(1_800_000);
    expect([removals, (await entries("a")).length]).toEqual([3, 1]);
  });
});

describe("after long work in one turn of the event loop", () => {
  /** Works for so long, right after the clock was read, and while a renewal is due: what is due is attended to right after it. */
  async function work(locks: LockManager, ms: number): Promise<void> {
    await locks.acquire("renewed", { ttl: "1s" });
    systemClock.now();
    block(ms);
  }

  it("a wait is counted from the request", async () => {
    const locks = await connect("memory:");
    onTestFinished(() => locks.close());
    const holder = await locks.acquire("a");
    await work(locks, 700);
    const waiting = locks.acquire("a", { wait: "600ms" });
    await sleep(20);
    await holder.release();
    await (await waiting).release();
  });

  it.each([true, false])(
    "the time for an answer is counted from the question (call order %s)",
    async (callOrder) => {
      const backend = new Controlled(memoryBackend(), { callOrder, expiry: "store" });
      let appends = 0;
      backend.hooks.append = async (send) => {
        appends++;
        await sleep(20);
        return send();
      };
      const locks = new LockManager(backend);
      onTestFinished(() => locks.close());
      await work(locks, 700);
      appends = 0;
      const lock = await locks.tryAcquire("a", { ttl: "600ms" });
      expect([lock?.held, appends]).toEqual([true, 1]);
      await lock?.release();
    },
  );
});
