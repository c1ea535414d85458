/** The wait loop when the store answers late, twice or not at all: what is held stays held, what is not wanted goes back. */
import { describe, expect, it } from "vitest";
import type { Snapshot } from "../../src/core/backend.ts";
import { LockError } from "../../src/core/errors.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { type Deferred, deferred, hanging, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const lost = (): LockError => new LockError("LOCK_OUTCOME_UNKNOWN", "the reply was lost");

describe("an append whose outcome is unknown", () => {
  it("is sent again with the same id, and finds its entry", async () => {
    const { locks, backend, clock } = rig();
    let appends = 0;
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      if (++appends === 1) throw lost();
      return snapshot;
    };
    const lock = track(locks.acquire("a"));
    await clock.advance(1_000);
    expect(lock.status).toBe("fulfilled");
    const ids = new Set(backend.calls.filter(({ method }) => method === "append").map(({ id }) => id));
    expect([appends, ids.size]).toEqual([2, 1]);
  });

  it("is given back, and told to the caller, after three tries", async () => {
    const { locks, backend, clock, entries } = rig();
    backend.hooks.append = async (send) => {
      await send();
      throw lost();
    };
    const lock = track(locks.acquire("a"));
    await clock.advance(2_000);
    expect(lock.error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
    expect(backend.count("append")).toBe(3);
    expect(await entries("a")).toEqual([]);
  });

  it("carries a driver's foreign error as its cause", async () => {
    const { locks, backend, clock } = rig();
    const cause = new RangeError("socket hang up");
    backend.hooks.append = () => {
      throw cause;
    };
    const lock = track(locks.acquire("a"));
    await clock.advance(2_000);
    expect(lock.error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN", cause, lock: "a", backend: "memory" });
    expect(lock.error).toHaveProperty("message", expect.stringContaining("socket hang up"));
  });

  it("does not count tries of earlier questions once the store has answered", async () => {
    const { locks, backend, clock, plant } = rig();
    plant("a", { ttlMs: 5_000 });
    let appends = 0;
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      appends += 1;
      if (appends === 1 || appends === 2 || appends === 4 || appends === 5) throw lost();
      return snapshot;
    };
    const lock = track(locks.acquire("a"));
    await clock.advance(6_000);
    expect(lock.status).toBe("fulfilled");
  });
});

describe("an append that surely did not happen", () => {
  it("rejects at once with LOCK_UNAVAILABLE, and asks for no removal", async () => {
    const { locks, backend } = rig();
    const refused = new LockError("LOCK_UNAVAILABLE", "connection refused");
    backend.hooks.append = () => Promise.reject(refused);
    expect(await rejection(locks.acquire("a"))).toBe(refused);
    await settle();
    expect(backend.count("remove")).toBe(0);
  });
});

describe("an append that is not answered for a ttl", () => {
  it("is sent again", async () => {
    const { locks, backend, clock } = rig();
    backend.hooks.append = () => hanging();
    track(locks.acquire("a", { ttl: "1s" }));
    await clock.advance(1_200);
    expect(backend.count("append")).toBe(2);
  });

  it("rejects with LOCK_OUTCOME_UNKNOWN after three, and is given back", async () => {
    const { locks, backend, clock } = rig();
    backend.hooks.append = () => hanging();
    const lock = track(locks.acquire("a", { ttl: "1s" }));
    await clock.advance(4_000);
    expect(lock.error).toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
    expect(backend.count("append")).toBe(3);
    expect(backend.count("remove")).toBe(1);
  });

  it("is taken out once more if its answer comes after the caller was told", async () => {
    const { locks, backend, clock, entries } = rig();
    const answers: Deferred<Snapshot | null>[] = [];
    const sends: (() => unknown)[] = [];
    backend.hooks.append = (send) => {
      const answer = deferred<Snapshot | null>();
      answers.push(answer);
      sends.push(async () => answer.resolve(await send()));
      return answer.promise;
    };
    track(locks.acquire("a", { ttl: "1s" }));
    await clock.advance(4_000);
    sends[0]?.();
    await settle();
    expect(answers).toHaveLength(3);
    expect(await entries("a")).toEqual([]);
  });

  it("does not cost the lock when its answer comes after a later append was granted", async () => {
    const { locks, backend, clock, entries } = rig();
    const late = deferred<Snapshot | null>();
    let appends = 0;
    backend.hooks.append = (send) => (++appends === 1 ? late.promise : send());
    const lock = await granted(locks.acquire("a", { ttl: "10s" }), () => clock.advance(12_000));
    const [entry] = await entries("a");
    expect(entry?.seq).toBe(lock.token);
    if (entry === undefined) return;
    late.resolve({ self: entry, ahead: { count: 0, weight: 0, nearest: null, nearestWriter: null } });
    await settle();
    expect((await entries("a")).map(({ id }) => id)).toEqual([entry.id]);
    expect(lock.held).toBe(true);
  });

  it("does not cost the lock when it fails after a later append was granted", async () => {
    const { locks, backend, clock, entries } = rig();
    const late = deferred<Snapshot | null>();
    let appends = 0;
    backend.hooks.append = (send) => (++appends === 1 ? late.promise : send());
    await granted(locks.acquire("a", { ttl: "10s" }), () => clock.advance(12_000));
    late.reject(lost());
    await settle();
    expect(await entries("a")).toHaveLength(1);
  });
});

describe("a grant that comes later than its ttl", () => {
  it("is not believed, but asked about again", async () => {
    const { locks, backend, clock } = rig();
    let appends = 0;
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      if (++appends === 1) clock.block(1_000);
      return snapshot;
    };
    const lock = track(locks.acquire("a", { ttl: "1s" }));
    await clock.advance(0);
    expect(lock.status).toBe("fulfilled");
    expect(lock.value?.held).toBe(true);
    expect(appends).toBe(2);
  });

  it("ends with LOCK_UNAVAILABLE that asks for a longer ttl when it happens three times", async () => {
    const { locks, backend, clock, entries } = rig();
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      clock.block(1_000);
      return snapshot;
    };
    const error = await rejection(locks.acquire("a", { ttl: "1s" }));
    expect(error).toMatchObject({
      code: "LOCK_UNAVAILABLE",
      message: 'lock "a" on memory: the store answers later than the ttl of 1s: give a longer ttl',
    });
    expect(await entries("a")).toEqual([]);
  });

  it("is not believed when a wake-up brings it after the entry expired", async () => {
    const { locks, other, clock } = rig();
    const holder = await other().locks.acquire("a", { ttl: "1h" });
    const waiter = track(locks.acquire("a", { ttl: "1s" }));
    await clock.advance(0);
    const before = holder.token + 1n;
    clock.block(2_000);
    await holder.release();
    await settle();
    expect(waiter.value?.held).toBe(true);
    expect(waiter.value?.token).toBeGreaterThan(before);
  });
});

describe("a wait that was given up while the store was asked", () => {
  it("gives the entry back when the answer comes", async () => {
    const { locks, backend, entries } = rig();
    const gate = deferred();
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      await gate.promise;
      return snapshot;
    };
    const controller = new AbortController();
    const lock = track(locks.acquire("a", { signal: controller.signal }));
    await settle();
    controller.abort();
    await settle();
    expect(lock.error).toMatchObject({ code: "LOCK_ABORTED" });
    expect(await entries("a")).toHaveLength(1);
    gate.resolve();
    await settle();
    expect(await entries("a")).toEqual([]);
  });

  it("asks for no removal when the answer was a refusal", async () => {
    const { locks, backend } = rig();
    const answer = deferred<Snapshot | null>();
    backend.hooks.append = () => answer.promise;
    const controller = new AbortController();
    track(locks.acquire("a", { wait: 0, signal: controller.signal }));
    controller.abort();
    answer.resolve(null);
    await settle();
    expect(backend.count("remove")).toBe(0);
  });
});

describe("a grant that is revoked before the caller's turn", () => {
  it("rejects rather than leave the caller waiting for ever", async () => {
    const { locks, backend, clock, plant, erase } = rig();
    plant("a");
    const renewal = deferred<readonly { outcome: "gone" }[]>();
    let wake: ((fresh?: Snapshot) => void) | undefined;
    let self: Snapshot["self"] | undefined;
    backend.hooks.renew = () => renewal.promise;
    backend.hooks.watch = (_send, onChange, entry) => {
      wake = onChange;
      self = entry;
      return () => {};
    };
    const lock = track(locks.acquire("a", { ttl: "10s" }));
    await clock.advance(4_000);
    expect(backend.count("renew")).toBe(1);
    if (self === undefined) throw new Error("nothing is watched");
    erase("a", "planted");
    // The answer to the renewal is read first, then the wake-up, in one turn.
    renewal.resolve([{ outcome: "gone" }]);
    wake?.({ self, ahead: { count: 0, weight: 0, nearest: null, nearestWriter: null } });
    await settle();
    expect(lock.status).not.toBe("pending");
  });
});

async function granted<T>(promise: Promise<T>, pass: () => Promise<void>): Promise<T> {
  const seen = track(promise);
  await pass();
  if (seen.value === undefined) throw new Error("not granted", { cause: seen.error });
  return seen.value;
}

describe("a lost lock whose holder has not left", () => {
  it("is not taken out by the late answer to an earlier append, but by its release", async () => {
    const { locks, backend, clock } = rig();
    const first = deferred<never>();
    let appends = 0;
    backend.hooks.append = async (send) => {
      const snapshot = await send();
      return ++appends === 1 ? first.promise : snapshot;
    };
    const asked = track(locks.acquire("a", { ttl: 3_000 }));
    await clock.advance(4_000);
    const lock = asked.value;
    expect(lock?.held).toBe(true);
    clock.stepWall(60_000);
    expect(lock?.held).toBe(false);
    first.reject(lost());
    await settle();
    expect(backend.count("remove")).toBe(0);
    expect(await lock?.release()).toBe("gone");
    // The release, and what the unanswered append may have left.
    expect(backend.count("remove")).toBe(2);
  });
});
