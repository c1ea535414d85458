/** Where renewal ends: at a release, at a loss, without a watchdog, at maxHold; and it ends for good. */
import { describe, expect, it } from "vitest";
import type { Renewed } from "../../src/core/backend.ts";
import { marginMs } from "../../src/core/keeper.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { type Deferred, deferred, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const ttl = "12s";

describe("the end of a claim is final", () => {
  it("a renewal that answers after the release changes nothing", async () => {
    const { locks, clock, backend, entries } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    const answers: Deferred<readonly Renewed[]>[] = [];
    backend.hooks.renew = () => {
      const answer = deferred<readonly Renewed[]>();
      answers.push(answer);
      return answer.promise;
    };
    await clock.advance(4_000);
    expect(await lock.release()).toBe("released");
    answers[0]?.resolve([{ outcome: "gone", evicted: true }]);
    await clock.advance(60_000);
    expect([lock.held, signal.aborted]).toEqual([false, false]);
    expect([backend.count("renew"), (await entries("a")).length]).toEqual([1, 0]);
  });

  it("a renewal that answers after the loss does not bring the lock back", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    const answers: Deferred<readonly Renewed[]>[] = [];
    backend.hooks.renew = () => {
      const answer = deferred<readonly Renewed[]>();
      answers.push(answer);
      return answer.promise;
    };
    await clock.advance(4_000);
    clock.block(8_000);
    expect(lock.held).toBe(false);
    answers[0]?.resolve([{ outcome: "renewed", expiresInMs: 60_000 }]);
    await clock.advance(0);
    expect(lock.held).toBe(false);
  });

  it("a renewal that answers after the deadline, but before anybody looked, does not bring it back either", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    const answers: Deferred<readonly Renewed[]>[] = [];
    backend.hooks.renew = () => {
      const answer = deferred<readonly Renewed[]>();
      answers.push(answer);
      return answer.promise;
    };
    await clock.advance(4_000);
    clock.block(8_000);
    answers[0]?.resolve([{ outcome: "renewed", expiresInMs: 60_000 }]);
    await settle();
    expect([lock.held, signal.aborted]).toEqual([false, true]);
  });

  it("a released lock is not renewed", async () => {
    const { locks, clock, backend } = rig();
    await (await locks.acquire("a", { ttl })).release();
    await clock.advance(60_000);
    expect(backend.count("renew")).toBe(0);
  });

  it("leaves no timer of the client behind", async () => {
    const { locks, clock } = rig();
    const idle = clock.timers;
    await (await locks.acquire("a", { ttl })).release();
    await clock.advance(120_000);
    expect(clock.timers).toBe(idle);
  });

  it("one that a listener of another loss ended is neither renewed nor lost", async () => {
    const { locks, clock, backend } = rig();
    const short = await locks.acquire("a", { ttl: "1s" });
    const long = await locks.acquire("b", { ttl: "30s" });
    const longSignal = long.signal;
    short.signal.addEventListener("abort", () => void long.release());
    clock.block(15_000);
    await clock.advance(0);
    expect(longSignal.aborted).toBe(false);
    expect(backend.calls.filter(({ method, queue }) => method === "renew" && queue === "b")).toEqual([]);
  });

  it("one that was due when a listener closed the client is closed, too", async () => {
    const { locks, clock } = rig();
    const short = await locks.acquire("a", { ttl: "1s" });
    const long = await locks.acquire("b", { ttl: "30s" });
    const longSignal = long.signal;
    short.signal.addEventListener("abort", () => void locks.close());
    clock.block(15_000);
    await clock.advance(0);
    expect([long.held, longSignal.aborted]).toEqual([false, true]);
  });
});

describe("without a watchdog", () => {
  it("the lock is lost when its ttl is over", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl, renew: false });
    await clock.advance(12_000 - marginMs(12_000) - 1);
    expect(lock.held).toBe(true);
    await clock.advance(1);
    expect([lock.held, backend.count("renew")]).toEqual([false, 0]);
  });

  it("a lock that was waited for is held for a full ttl", async () => {
    const { locks, clock, other } = rig();
    const holder = await other().locks.acquire("a", { ttl });
    const waiter = track(locks.acquire("a", { ttl, renew: false }));
    await clock.advance(30_500);
    await holder.release();
    await clock.advance(0);
    expect(waiter.value?.validForMs).toBeGreaterThan(12_000 - marginMs(12_000) - 50);
    await clock.advance(12_000);
    expect(waiter.value?.held).toBe(false);
  });
});

describe("maxHold", () => {
  it("ends the lock, although it was renewed", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl, maxHold: "60s" });
    const { signal } = lock;
    await clock.advance(59_999);
    expect(lock.held).toBe(true);
    await clock.advance(1);
    expect(lock.held).toBe(false);
    expect(signal.reason).toHaveProperty("message", expect.stringContaining("maxHold"));
  });

  it("is counted from the grant, not from the request", async () => {
    const { locks, clock, other } = rig();
    const holder = await other().locks.acquire("a", { ttl });
    const waiter = track(locks.acquire("a", { ttl, maxHold: "20s" }));
    await clock.advance(100_000);
    await holder.release();
    await clock.advance(19_999);
    expect(waiter.value?.held).toBe(true);
    await clock.advance(1);
    expect(waiter.value?.held).toBe(false);
  });

  it("bounds belief even where it is shorter than the ttl", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl, maxHold: "1s" });
    expect(lock.validForMs).toBe(1_000);
    await clock.advance(1_000);
    expect(lock.held).toBe(false);
  });

  it("stops renewing once the validity reaches it", async () => {
    const { locks, clock, backend } = rig();
    await locks.acquire("a", { ttl, maxHold: "60s" });
    await clock.advance(200_000);
    const renewals = backend.count("renew");
    await clock.advance(200_000);
    expect(backend.count("renew")).toBe(renewals);
  });
});

describe("the margin of belief", () => {
  it.each([
    [1, 0.1],
    [50, 5],
    [30_000, 305],
    [3_600_000, 36_005],
  ])("of %d ms is %d ms", (lifeMs, margin) => {
    expect(marginMs(lifeMs)).toBeCloseTo(margin, 9);
  });
});
