/** Waiting: how it ends, what it says, and what it does when the store's hints do not come. */
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { hanging, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

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

describe("a waiter", () => {
  it("gets the lock the moment it is released, without another question", async () => {
    const { locks, backend, other } = rig();
    const holder = await other().locks.acquire("a");
    const waiter = track(locks.acquire("a"));
    await holder.release();
    await settle();
    expect(waiter.status).toBe("fulfilled");
    expect(backend.count("append")).toBe(1);
  });

  it("looks again when the entry ahead would expire", async () => {
    const { locks, clock, plant } = rig();
    plant("a", { ttlMs: 7_000 });
    const waiter = track(locks.acquire("a"));
    await clock.advance(6_999);
    expect(waiter.status).toBe("pending");
    await clock.advance(20);
    expect(waiter.status).toBe("fulfilled");
  });

  it.each([
    ["rejects", () => Promise.reject(new Error("no subscription"))],
    [
      "throws",
      () => {
        throw new Error("no subscription");
      },
    ],
  ])("whose watch %s looks by itself", async (_how, watch) => {
    const { locks, clock, backend, other } = rig();
    const holder = await other().locks.acquire("a", { ttl: "1h" });
    backend.hooks.watch = watch;
    const waiter = track(locks.acquire("a", { ttl: "30s" }));
    await clock.advance(10);
    await holder.release();
    await clock.advance(5_000);
    expect(waiter.status).toBe("fulfilled");
  });

  it("whose watch never answers looks when the entry ahead would expire", async () => {
    const { locks, clock, backend, plant } = rig();
    plant("a", { ttlMs: 7_000 });
    backend.hooks.watch = () => hanging();
    const waiter = track(locks.acquire("a"));
    await clock.advance(7_020);
    expect(waiter.status).toBe("fulfilled");
  });

  it("that is told without reason looks and goes on waiting", async () => {
    const { locks, backend, other } = rig();
    await other().locks.acquire("a");
    let wake: (() => void) | undefined;
    backend.hooks.watch = (send, onChange) => {
      wake = onChange;
      return send();
    };
    const waiter = track(locks.acquire("a"));
    wake?.();
    await settle();
    expect([waiter.status, backend.count("append")]).toEqual(["pending", 2]);
  });

  it("ends a watch that begins after the wait was over", async () => {
    const { locks, backend, other } = rig();
    await other().locks.acquire("a");
    let ended = 0;
    const controller = new AbortController();
    backend.hooks.watch = async () => {
      controller.abort();
      return () => {
        ended += 1;
      };
    };
    const waiter = track(locks.acquire("a", { signal: controller.signal }));
    await settle();
    expect([waiter.status, ended]).toEqual(["rejected", 1]);
  });

  it("takes no hint of a watch that it has ended", async () => {
    const { locks, backend, other } = rig();
    const holder = await other().locks.acquire("a");
    let wake: (() => void) | undefined;
    backend.hooks.watch = (send, onChange) => {
      wake = onChange;
      return send();
    };
    track(locks.acquire("a"));
    await holder.release();
    await settle();
    wake?.();
    await settle();
    expect(backend.count("append")).toBe(1);
  });

  it("bears a store that is down for a while, as long as its entry lives", async () => {
    const { locks, clock, backend, plant } = rig();
    plant("a", { ttlMs: 5_000 });
    const waiter = track(locks.acquire("a", { ttl: "30s" }));
    await clock.advance(4_900);
    const down = new LockError("LOCK_UNAVAILABLE", "down");
    backend.hooks.append = () => Promise.reject(down);
    await clock.advance(3_000);
    backend.hooks = {};
    await clock.advance(10_000);
    expect(waiter.status).toBe("fulfilled");
  });

  it("is told when the store is down for longer than its entry lives", async () => {
    const { locks, clock, backend, plant } = rig();
    plant("a", { ttlMs: 5_000 });
    const waiter = track(locks.acquire("a", { ttl: "10s" }));
    await clock.advance(4_900);
    const down = new LockError("LOCK_UNAVAILABLE", "down");
    backend.hooks.append = () => Promise.reject(down);
    backend.hooks.renew = () => Promise.reject(down);
    await clock.advance(30_000);
    expect(waiter.error).toBe(down);
  });

  it("for permits gets those of a client that died, although others ahead live on", async () => {
    const { locks, clock, plant, other } = rig();
    plant("-semaphore/s", { ttlMs: 10_000, mode: "read", permits: 2 });
    await other().locks.semaphore("s", 2).acquire({ ttl: "1h" });
    const waiter = track(locks.semaphore("s", 2).acquire({ ttl: "12s" }));
    await clock.advance(25_000);
    expect(waiter.status).toBe("fulfilled");
  });

  it("shares one signal with a thousand others without a warning", async () => {
    const { locks, other } = rig();
    await other().locks.acquire("a");
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => {
      warnings.push(warning.name);
    };
    process.on("warning", onWarning);
    const controller = new AbortController();
    const all = Array.from({ length: 1_000 }, () => track(locks.acquire("a", { signal: controller.signal })));
    await settle();
    controller.abort();
    await settle();
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
    expect(all.filter(({ status }) => status === "rejected")).toHaveLength(1_000);
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

describe("requests of one client to a store that answers out of order", () => {
  it("queue in the order of their calls", async () => {
    const { locks, backend, clock, entries, other } = rig({ traits: { callOrder: false } });
    await other().locks.acquire("a");
    let delay = 100;
    backend.hooks.append = async (send) => {
      // Each call reaches the store sooner than the one before it.
      delay -= 20;
      await new Promise<void>((resolve) => clock.after(delay, resolve));
      return send();
    };
    for (const metadata of ["1", "2", "3", "4"]) track(locks.acquire("a", { metadata }));
    await clock.advance(1_000);
    expect((await entries("a")).slice(1).map(({ metadata }) => metadata)).toEqual(["1", "2", "3", "4"]);
  });

  it("do not wait for those of another name", async () => {
    const { locks, backend } = rig({ traits: { callOrder: false } });
    backend.hooks.append = (send, queue) => (queue === "a" ? hanging() : send());
    track(locks.acquire("a"));
    expect((await locks.acquire("b")).held).toBe(true);
  });

  it("send an append again that was not answered for a ttl", async () => {
    const { locks, backend, clock } = rig({ traits: { callOrder: false } });
    let appends = 0;
    backend.hooks.append = (send) => (++appends === 1 ? hanging() : send());
    const lock = track(locks.acquire("a", { ttl: "1s" }));
    await clock.advance(1_500);
    expect([lock.status, appends]).toEqual(["fulfilled", 2]);
  });

  it("do not wait for ever behind one that was not answered", async () => {
    const { locks, backend, clock } = rig({ traits: { callOrder: false } });
    let appends = 0;
    backend.hooks.append = (send) => (++appends === 1 ? hanging() : send());
    const controller = new AbortController();
    track(locks.acquire("a", { ttl: "1s", signal: controller.signal }));
    const second = track(locks.acquire("a", { ttl: "10s" }));
    controller.abort();
    await clock.advance(2_000);
    expect(second.status).toBe("fulfilled");
  });

  it("are never sent if they were given up before their turn", async () => {
    const { locks, backend, clock, other } = rig({ traits: { callOrder: false } });
    await other().locks.acquire("a");
    backend.hooks.append = async (send) => {
      await new Promise<void>((resolve) => clock.after(100, resolve));
      return send();
    };
    track(locks.acquire("a"));
    const controller = new AbortController();
    track(locks.acquire("a", { signal: controller.signal }));
    await clock.advance(50);
    controller.abort();
    await clock.advance(500);
    expect([backend.count("append"), backend.count("remove")]).toEqual([1, 0]);
  });
});
