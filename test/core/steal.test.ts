/** Stealing: the holder is told at once, those who waited wait again, and the token grows. */
import { describe, expect, it } from "vitest";
import { LockManager } from "../../src/core/manager.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

describe("steal", () => {
  it("takes the lock, and its token is larger", async () => {
    const { locks, other } = rig();
    const holder = await other().locks.acquire("a");
    const thief = await locks.acquire("a", { steal: true });
    await settle();
    expect([holder.held, thief.held]).toEqual([false, true]);
    expect(thief.token).toBeGreaterThan(holder.token);
  });

  it("is told to each manager of a backend that several share", async () => {
    const { backend, clock, locks, other } = rig();
    const holders = [await locks.acquire("a"), await new LockManager(backend, { clock }).acquire("b")];
    const thief = other().locks;
    for (const name of ["a", "b"]) await thief.acquire(name, { steal: true });
    await settle();
    expect(holders.map(({ held }) => held)).toEqual([false, false]);
  });

  it("rejects the section of the holder with AbortError at once, while its callback runs on", async () => {
    const { locks } = rig();
    const gate = deferred();
    let ended = false;
    const victim = track(
      locks.request("a", async () => {
        await gate.promise;
        ended = true;
      }),
    );
    await settle();
    await locks.acquire("a", { steal: true });
    await settle();
    expect(victim.error).toBeInstanceOf(DOMException);
    expect(victim.error).toHaveProperty("name", "AbortError");
    gate.resolve();
    await settle();
    expect(ended).toBe(true);
  });

  it("does not end the thief's lock when the victim's callback ends", async () => {
    const { locks, entries } = rig();
    const gate = deferred();
    track(locks.request("a", () => gate.promise));
    await settle();
    const thief = await locks.acquire("a", { steal: true });
    gate.resolve();
    await settle();
    expect([thief.held, (await entries("a")).length]).toEqual([true, 1]);
  });

  it("aborts the signal of the holder, and says why", async () => {
    const { locks, other } = rig();
    const holder = await other().locks.acquire("a");
    const { signal } = holder;
    await locks.acquire("a", { steal: true });
    await settle();
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
    expect(signal.reason).toHaveProperty("message", expect.stringContaining("somebody else took it away"));
  });

  it("takes it from all who share it", async () => {
    const { locks, other } = rig();
    const readers = [
      await other().locks.acquire("a", { mode: "shared" }),
      await other().locks.acquire("a", { mode: "shared" }),
    ];
    await locks.acquire("a", { steal: true });
    await settle();
    expect(readers.map(({ held }) => held)).toEqual([false, false]);
  });

  it("lets those who waited wait again: each is granted once, after the thief, in their order", async () => {
    const { locks } = rig();
    const order: string[] = [];
    const holder = track(locks.request("a", () => new Promise<void>(() => {})));
    const waiters = ["w1", "w2", "w3"].map((name) => track(locks.request("a", () => void order.push(name))));
    await settle();
    const gate = deferred();
    const thief = track(
      locks.request("a", { steal: true }, async () => {
        order.push("thief");
        await gate.promise;
      }),
    );
    await settle();
    expect(order).toEqual(["thief"]);
    gate.resolve();
    await settle();
    expect(order).toEqual(["thief", "w1", "w2", "w3"]);
    expect([holder.status, thief.status]).toEqual(["rejected", "fulfilled"]);
    expect(waiters.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });

  it("never lets a reader in that waits behind a writer that waits", async () => {
    const { locks, other } = rig();
    const client = other().locks;
    const order: string[] = [];
    await client.acquire("a", { mode: "shared" });
    const writer = track(client.request("a", () => void order.push("writer")));
    const reader = track(client.request("a", { mode: "shared" }, () => void order.push("reader")));
    await settle();
    const thief = await locks.acquire("a", { steal: true });
    await settle();
    expect(order).toEqual([]);
    await thief.release();
    await settle();
    expect([writer.status, reader.status]).toEqual(["fulfilled", "fulfilled"]);
    expect(order).toHaveLength(2);
  });

  it("of a free lock is a plain request", async () => {
    const { locks, backend } = rig();
    await locks.acquire("a", { steal: true });
    expect(backend.calls.map(({ method }) => method)).toEqual(["append"]);
  });

  it("can be stolen from", async () => {
    const { locks } = rig();
    const first = await locks.acquire("a", { steal: true });
    const second = await locks.acquire("a", { steal: true });
    await settle();
    expect([first.held, second.held]).toEqual([false, true]);
  });

  it("of two at once leaves one holder", async () => {
    const { locks, other } = rig();
    await other().locks.acquire("a");
    const all = [locks, other().locks].map((each) => track(each.acquire("a", { steal: true })));
    await settle();
    expect(all.filter(({ value }) => value?.held === true)).toHaveLength(1);
  });

  it("that the store answers late does not cost the thief its lock", async () => {
    const { locks, backend, clock, entries, other } = rig();
    const holder = await other().locks.acquire("a", { ttl: "1h" });
    const late = deferred();
    let lists = 0;
    backend.hooks.list = async (send) => {
      if (++lists === 1) await late.promise;
      return send();
    };
    const thief = track(locks.acquire("a", { steal: true, ttl: "10s" }));
    await clock.advance(9_000);
    await holder.release();
    await clock.advance(5_000);
    expect(thief.value?.held).toBe(true);
    late.resolve();
    await settle();
    expect((await entries("a")).map(({ seq }) => seq)).toEqual([thief.value?.token]);
  });

  it("fails with the store's error when it cannot evict", async () => {
    const { locks, backend, other, clock, entries } = rig();
    const holder = await other().locks.acquire("a", { ttl: "1h" });
    const down = new Error("down");
    backend.hooks.list = () => Promise.reject(down);
    const thief = track(locks.acquire("a", { steal: true, ttl: "10s", wait: "30s" }));
    await clock.advance(30_000);
    expect(thief.status).toBe("rejected");
    expect(holder.held).toBe(true);
    await settle();
    expect(await entries("a")).toHaveLength(1);
  });

  it("says evicted of nobody who left by another way, though they were evicted once before", async () => {
    const { locks, other, entries, erase, clock } = rig();
    await locks.acquire("a");
    const client = other();
    const waiter = track(client.locks.acquire("a"));
    await settle();
    const thief = await locks.acquire("a", { steal: true });
    await thief.release();
    await settle();
    const lock = waiter.value;
    expect(lock?.held).toBe(true);
    const signal = lock?.signal;
    const [entry] = await entries("a");
    erase("a", entry?.id ?? "");
    await clock.advance(12_000);
    expect(signal?.reason).toHaveProperty("message", expect.stringContaining("the store does not have it"));
  });

  it("rejects a set of which one name was stolen", async () => {
    const { locks } = rig();
    const gate = deferred();
    const section = locks.request(["a", "b"], async (set) => {
      gate.resolve();
      await new Promise<void>((resolve) => set.signal.addEventListener("abort", () => resolve()));
    });
    const seen = rejection(section);
    await gate.promise;
    await locks.acquire("b", { steal: true });
    expect(await seen).toHaveProperty("name", "AbortError");
  });
});
