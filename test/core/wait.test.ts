/** Waiting: what it does when the store is slow, answers out of order, or gives no hints. */
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { hanging, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

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

  it("whose process stood still for longer than its entry lived joins again, though its first question goes to a dead connection", async () => {
    const { locks, clock, backend, plant, entries } = rig();
    plant("a", { ttlMs: 60_000 });
    const waiter = track(locks.acquire("a", { ttl: "10s" }));
    await clock.advance(1_000);
    const dead = new LockError("LOCK_OUTCOME_UNKNOWN", "the connection ended");
    let calls = 0;
    backend.hooks.append = (send) => (++calls > 1 ? send() : Promise.reject(dead));
    clock.block(30_000);
    await clock.advance(1_000);
    expect([waiter.error, (await entries("a")).length]).toEqual([undefined, 2]);
    await clock.advance(60_000);
    expect(waiter.status).toBe("fulfilled");
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
