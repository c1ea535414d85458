/** The callback form: what becomes of a section whose lock is lost or whose release fails. */
import { describe, expect, it } from "vitest";
import { marginMs } from "../../src/core/keeper.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const ttl = "10s";
const beliefMs = 10_000 - marginMs(10_000);

describe("a section whose lock is lost", () => {
  it("rejects with LOCK_LOST when the callback ends, not before", async () => {
    const { locks, clock } = rig();
    const gate = deferred();
    const section = track(locks.request("a", { ttl, renew: false }, () => gate.promise));
    await clock.advance(10_000);
    expect(section.status).toBe("pending");
    gate.resolve();
    await settle();
    expect(section.error).toMatchObject({ code: "LOCK_LOST", lock: "a" });
  });

  it("rejects although no timer saw it: the clock at the end counts", async () => {
    const { locks, clock } = rig();
    const section = locks.request("a", { ttl }, () => clock.block(beliefMs));
    expect(await rejection(section)).toMatchObject({ code: "LOCK_LOST" });
  });

  it("rejects although the callback released it itself after the loss", async () => {
    const { locks, clock } = rig();
    const section = locks.request("a", { ttl }, async (lock) => {
      clock.block(beliefMs);
      await lock.release();
    });
    expect(await rejection(section)).toMatchObject({ code: "LOCK_LOST" });
  });

  it("rejects with the callback's own error, if it has one", async () => {
    const { locks, clock } = rig();
    const own = new Error("own");
    const section = locks.request("a", { ttl }, () => {
      clock.block(beliefMs);
      throw own;
    });
    expect(await rejection(section)).toBe(own);
  });

  it("gives its result when the callback released the lock in time", async () => {
    const { locks, clock } = rig();
    const section = track(
      locks.request("a", { ttl }, async (lock) => {
        await lock.release();
        clock.block(60_000);
        return 7;
      }),
    );
    await settle();
    expect(section.value).toBe(7);
  });

  it("gives its result although the release failed", async () => {
    const { locks, backend } = rig();
    backend.hooks.remove = () => Promise.reject(new Error("reset"));
    expect(await locks.request("a", () => 7)).toBe(7);
  });

  it("keeps the callback's error although the release failed", async () => {
    const { locks, backend } = rig();
    const own = new Error("own");
    backend.hooks.remove = () => Promise.reject(new Error("reset"));
    const section = locks.request("a", () => {
      throw own;
    });
    expect(await rejection(section)).toBe(own);
  });
});
