/** What a holder has: held by the clock, a signal, a release that tells what became of it. */
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import { marginMs } from "../../src/core/keeper.ts";
import { hanging, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const ttl = "10s";
const beliefMs = 10_000 - marginMs(10_000);

describe("a lock", () => {
  it("has a name, a mode and a token that grows with each grant", async () => {
    const { locks } = rig();
    const first = await locks.acquire("a");
    await first.release();
    const second = await locks.acquire("a", { mode: "shared" });
    expect([first.name, first.mode, second.mode]).toEqual(["a", "exclusive", "shared"]);
    expect(second.token).toBeGreaterThan(first.token);
  });

  it("has no token where the store gives none, and says so", async () => {
    const { locks } = rig({ traits: { tokens: null } });
    const lock = await locks.acquire("a");
    expect(() => lock.token).toThrow(expect.objectContaining({ code: "LOCK_UNSUPPORTED", lock: "a" }));
    expect(lock.toJSON()).toEqual({ name: "a", mode: "exclusive", token: null, held: true });
    expect(await lock.release()).toBe("released");
  });

  it("is not held after the event loop was blocked past its validity, before any timer ran", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    clock.block(beliefMs - 1);
    expect(lock.held).toBe(true);
    clock.block(1);
    expect(lock.held).toBe(false);
  });

  it("is not held after the machine was suspended past its validity", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    clock.stepWall(60_000);
    expect(lock.held).toBe(false);
  });

  it("is still held after the wall clock was set back", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    clock.stepWall(-3_600_000);
    expect(lock.held).toBe(true);
    await clock.advance(60_000);
    expect(lock.held).toBe(true);
  });

  it("stays lost once held was false, although the renewal under way succeeds", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    clock.block(beliefMs);
    expect(lock.held).toBe(false);
    await clock.advance(60_000);
    expect([lock.held, lock.validForMs]).toEqual([false, 0]);
  });

  it("says for how long holding is certain", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    expect(lock.validForMs).toBe(beliefMs);
    clock.block(1_000);
    expect(lock.validForMs).toBe(beliefMs - 1_000);
    await lock.release();
    expect(lock.validForMs).toBe(0);
  });

  it("asserts that it is held, with the reason if it is not", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    expect(() => lock.assertHeld()).not.toThrow();
    clock.block(beliefMs);
    expect(() => lock.assertHeld()).toThrow(
      expect.objectContaining({ code: "LOCK_LOST", lock: "a", backend: "memory" }),
    );
    expect(() => lock.assertHeld()).toThrow(/its ttl passed before a renewal was answered/);
  });

  it("says that it was released when it is asserted after that", async () => {
    const { locks } = rig();
    const lock = await locks.acquire("a");
    await lock.release();
    expect(() => lock.assertHeld()).toThrow(/it was released/);
  });
});

describe("the signal of a lock", () => {
  it("aborts at the deadline, with LOCK_LOST as its reason", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    backend.hooks.renew = () => hanging();
    await clock.advance(beliefMs);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LockError);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
  });

  it("is the same each time", async () => {
    const { locks } = rig();
    const lock = await locks.acquire("a");
    expect(lock.signal).toBe(lock.signal);
  });

  it("that is first asked for after the loss is aborted already", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    clock.block(beliefMs);
    expect(lock.signal.aborted).toBe(true);
  });

  it("is not aborted by a release", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    await lock.release();
    await clock.advance(60_000);
    expect(signal.aborted).toBe(false);
  });

  it("aborts when held finds out first", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    clock.block(beliefMs);
    expect(lock.held).toBe(false);
    expect(signal.aborted).toBe(true);
  });
});

describe("a release", () => {
  it("says released, and the lock is free", async () => {
    const { locks, entries } = rig();
    const lock = await locks.acquire("a");
    expect(await lock.release()).toBe("released");
    expect(await entries("a")).toEqual([]);
  });

  it("ends holding at once, before the store has answered", async () => {
    const { locks, backend } = rig();
    const lock = await locks.acquire("a");
    backend.hooks.remove = () => hanging();
    track(lock.release());
    expect(lock.held).toBe(false);
  });

  it("says gone when the store did not have it any more", async () => {
    const { locks, entries, erase } = rig();
    const lock = await locks.acquire("a");
    const [entry] = await entries("a");
    erase("a", entry?.id ?? "");
    expect(await lock.release()).toBe("gone");
  });

  it("counts once, however often it is called", async () => {
    const { locks, backend } = rig();
    const lock = await locks.acquire("a");
    expect([await lock.release(), await lock.release()]).toEqual(["released", "released"]);
    expect(backend.count("remove")).toBe(1);
  });

  it("does not free a later grant of the same name", async () => {
    const { locks, clock, other } = rig();
    const lock = await locks.acquire("a", { ttl, renew: false });
    await clock.advance(10_000);
    const next = await other().locks.acquire("a");
    expect(await lock.release()).toBe("gone");
    expect(await other().locks.tryAcquire("a")).toBeNull();
    expect(next.held).toBe(true);
  });

  it("that the store does not answer rejects after a ttl", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    backend.hooks.remove = () => hanging();
    const released = track(lock.release());
    await clock.advance(9_999);
    expect(released.status).toBe("pending");
    await clock.advance(1);
    expect(released.error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN", lock: "a" });
  });

  it("that the store does not answer rejects after a ttl even if the client has been closed", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    backend.hooks.remove = () => hanging();
    const released = track(lock.release());
    await locks.close();
    await clock.advance(10_000);
    expect(released.error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN", lock: "a" });
  });

  it("has no timer of its own: there may be thousands under way", async () => {
    const { locks, clock, backend } = rig();
    const held = await Promise.all(Array.from({ length: 100 }, (_, index) => locks.acquire(`${index}`)));
    const before = clock.timers;
    backend.hooks.remove = () => hanging();
    const released = held.map((lock) => track(lock.release()));
    expect(clock.timers).toBeLessThanOrEqual(before + 1);
    await clock.advance(60_000);
    expect(released.map(({ status }) => status)).toEqual(held.map(() => "rejected"));
  });

  it.each([
    ["rejects", () => Promise.reject(new Error("reset"))],
    [
      "throws",
      () => {
        throw new Error("reset");
      },
    ],
  ])("that %s is told to the caller, and tried again in the background", async (_how, fail) => {
    const { locks, clock, backend, entries } = rig();
    const lock = await locks.acquire("a", { ttl: "1h" });
    let removals = 0;
    backend.hooks.remove = (send) => (++removals === 1 ? fail() : send());
    const error = await rejection(lock.release());
    expect(error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN", cause: new Error("reset") });
    await clock.advance(1_000);
    expect(await entries("a")).toEqual([]);
  });

  it("by await using is quiet when the store fails", async () => {
    const { locks, backend } = rig();
    backend.hooks.remove = () => Promise.reject(new Error("reset"));
    const lock = await locks.acquire("a");
    await expect(lock[Symbol.asyncDispose]()).resolves.toBeUndefined();
    expect(lock.held).toBe(false);
  });

  it("by await using frees the lock", async () => {
    const { locks, entries } = rig();
    {
      await using lock = await locks.acquire("a");
      expect(lock.held).toBe(true);
    }
    expect(await entries("a")).toEqual([]);
  });

  it("of a lock that was lost unseen shows the loss by the signal", async () => {
    const { locks, clock } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    clock.block(beliefMs);
    await lock.release();
    expect(signal.aborted).toBe(true);
  });
});

describe("a lock in a log", () => {
  it("shows its name, mode, token and whether it is held, and nothing of what is inside", async () => {
    const { locks } = rig();
    const lock = await locks.acquire("a");
    const shown = { name: "a", mode: "exclusive", token: String(lock.token), held: true };
    expect(JSON.parse(JSON.stringify(lock))).toEqual(shown);
    expect(inspect(lock)).toBe(`Lock ${inspect(shown)}`);
  });
});
