/** A lock goes from one entry of a client to the next of the same client without the store's word, where that is sure. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, hanging, track } from "../helpers/promises.ts";
import { type Rig, rig } from "../helpers/rig.ts";

/** A store that hands over, takes its time for removals and never tells a waiter anything: who is granted was handed the lock. */
function silentRig(): Rig {
  const made = rig();
  made.backend.handsOver();
  made.backend.hooks.watch = () => () => {};
  made.backend.hooks.remove = () => hanging();
  return made;
}

describe("a lock that is released while the next entry of the same client waits", () => {
  it("is held by the next at once, though the store has not answered", async () => {
    const { locks } = silentRig();
    const first = await locks.acquire("a");
    const second = track(locks.acquire("a"));
    await settle();
    void first.release();
    await settle();
    expect(second.value?.held).toBe(true);
    expect(second.value?.token).toBeGreaterThan(first.token);
  });

  it("goes on to all who wait, in their order", async () => {
    const { locks } = silentRig();
    const order: number[] = [];
    const first = await locks.acquire("a");
    for (const turn of [1, 2, 3, 4]) void locks.request("a", () => void order.push(turn));
    await settle();
    void first.release();
    await settle();
    expect(order).toEqual([1, 2, 3, 4]);
  });

  it("is not handed past an entry of another client", async () => {
    const { locks, other } = silentRig();
    const first = await locks.acquire("a");
    const between = track(other().locks.acquire("a"));
    await settle();
    const last = track(locks.acquire("a"));
    await settle();
    void first.release();
    await settle();
    expect([between.status, last.status]).toEqual(["pending", "pending"]);
  });

  it("is not handed on by a reader: others may read", async () => {
    const { locks } = silentRig();
    const readers = [
      await locks.acquire("a", { mode: "shared" }),
      await locks.acquire("a", { mode: "shared" }),
    ];
    const writer = track(locks.acquire("a"));
    await settle();
    void readers[1]?.release();
    await settle();
    expect(writer.status).toBe("pending");
  });

  it("is not handed to an entry that may have expired", async () => {
    const { locks, clock, backend } = silentRig();
    const first = await locks.acquire("a", { ttl: "60s" });
    const second = track(locks.acquire("a", { ttl: "1s" }));
    await settle();
    backend.hooks.renew = () => hanging();
    await clock.advance(1_000);
    backend.hooks.append = () => hanging();
    void first.release();
    await settle();
    expect(second.status).toBe("pending");
  });

  it("is not handed to one that has given up", async () => {
    const { locks, backend } = silentRig();
    const heirs: string[] = [];
    backend.handOver = (_queue, _id, _seq, heir) => {
      heirs.push(heir);
      return hanging();
    };
    const first = await locks.acquire("a");
    const leaving = new AbortController();
    track(locks.acquire("a", { signal: leaving.signal }));
    await settle();
    leaving.abort();
    await settle();
    void first.release();
    await settle();
    expect(heirs).toEqual([]);
  });

  it("is not handed to one whom a theft of the same client displaces", async () => {
    const { locks, backend } = silentRig();
    const first = await locks.acquire("a");
    const second = track(locks.acquire("a"));
    await settle();
    const thief = track(locks.acquire("a", { steal: true }));
    await settle();
    expect(thief.status).toBe("pending");
    void first.release();
    await settle();
    expect(second.status).toBe("pending");
    expect(backend.count("remove")).toBeGreaterThan(1);
  });

  it("is not handed to one that saw it in another place", async () => {
    const { locks, clock, backend, entries, erase, other } = rig({ ttl: "30s" });
    backend.handsOver();
    const elsewhere = await other().locks.acquire("a");
    const first = track(locks.acquire("a"));
    await settle();
    backend.hooks.watch = () => () => {};
    const second = track(locks.acquire("a"));
    await settle();
    backend.hooks = {};
    const [, firstEntry, secondEntry] = await entries("a");
    // The first is taken out and joins again behind the second, which does not hear of it; then the second is taken out.
    erase("a", firstEntry?.id ?? "");
    await clock.advance(10_000);
    expect(await entries("a")).toMatchObject([{}, { id: secondEntry?.id }, { id: firstEntry?.id }]);
    erase("a", secondEntry?.id ?? "");
    await elsewhere.release();
    await settle();
    expect(first.value?.held).toBe(true);
    void first.value?.release();
    await settle();
    expect(second.status).toBe("pending");
  });

  it("is asked of the store after 64 that were handed over in a row", async () => {
    const { locks } = silentRig();
    let entered = 0;
    const first = await locks.acquire("a");
    for (let waiter = 0; waiter < 100; waiter++) void locks.request("a", () => void (entered += 1));
    await settle();
    void first.release();
    await settle();
    expect(entered).toBe(64);
  });
});

describe("who was handed a lock that the store says was gone", () => {
  it("is asked about at once, and loses it if it is gone, too", async () => {
    const { locks, backend, entries, erase } = rig();
    backend.handsOver();
    backend.hooks.watch = () => () => {};
    const first = await locks.acquire("a");
    const second = track(locks.acquire("a"));
    await settle();
    for (const { id } of await entries("a")) erase("a", id);
    const removed = deferred<boolean>();
    backend.hooks.remove = () => removed.promise;
    const released = first.release();
    await settle();
    expect(second.value?.held).toBe(true);
    removed.resolve(false);
    expect(await released).toBe("gone");
    await settle();
    expect(second.value?.held).toBe(false);
  });
});

describe("where the store does not say that places are sure", () => {
  it("it is the store that grants", async () => {
    const { locks, backend } = rig();
    backend.hooks.watch = () => () => {};
    backend.hooks.remove = () => hanging();
    const first = await locks.acquire("a");
    const second = track(locks.acquire("a"));
    await settle();
    void first.release();
    await settle();
    expect(second.status).toBe("pending");
  });
});
