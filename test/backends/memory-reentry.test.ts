/** The memory store while its own wake-ups call it again: a client that hears of a change asks within the same call. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

describe("an append that finds expired entries", () => {
  it("meets the client that it wakes in one and the same queue", async () => {
    const { locks, other, clock, plant, erase, entries } = rig();
    plant("a", { ttlMs: 5_000 });
    const waiter = track(other().locks.acquire("a", { ttl: "1h" }));
    await settle();
    const [, waiting] = await entries("a");
    erase("a", waiting?.id ?? "");
    clock.block(6_000);
    const late = track(locks.acquire("a"));
    await settle();
    expect([waiter.value?.held, late.value?.held]).toEqual([true, undefined]);
    expect(await entries("a")).toHaveLength(2);
  });

  it("gives the client that it wakes a seq of its own", async () => {
    const { locks, other, clock, plant, erase, entries } = rig();
    await other().locks.acquire("a", { ttl: "1h" });
    plant("a", { ttlMs: 5_000 });
    track(other().locks.acquire("a", { ttl: "1h" }));
    await settle();
    const waiting = (await entries("a")).at(-1);
    erase("a", waiting?.id ?? "");
    clock.block(6_000);
    track(locks.acquire("a"));
    await settle();
    const seqs = (await entries("a")).map(({ seq }) => seq);
    expect(seqs).toHaveLength(3);
    expect(new Set(seqs).size).toBe(3);
    expect(seqs).toEqual(seqs.toSorted((a, b) => Number(a - b)));
  });

  it("lets the client that it wakes watch the new entry", async () => {
    const { locks, other, clock, plant, erase, entries } = rig();
    await other().locks.acquire("a", { ttl: "1h" });
    plant("a", { ttlMs: 5_000 });
    const woken = other();
    track(woken.locks.acquire("a", { ttl: "1h" }));
    await settle();
    const waiting = (await entries("a")).at(-1);
    erase("a", waiting?.id ?? "");
    clock.block(6_000);
    track(locks.acquire("a", { ttl: "1h" }));
    await settle();
    expect(woken.backend.count("watch")).toBe(2);
  });

  it("leaves nothing ahead of the client that it wakes when it is refused", async () => {
    const { locks, other, clock, plant, erase, entries } = rig();
    const holder = await other().locks.acquire("a", { ttl: "1h" });
    plant("a", { ttlMs: 5_000 });
    const woken = track(other().locks.acquire("a", { ttl: "1h" }));
    await settle();
    const waiting = (await entries("a")).at(-1);
    erase("a", waiting?.id ?? "");
    clock.block(6_000);
    expect(await locks.tryAcquire("a")).toBeNull();
    await holder.release();
    await settle();
    expect(woken.value?.held).toBe(true);
  });
});
