/** Reentrancy: who enters, with which token, and who is refused. */
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const reentrant = true;

describe("a nested request", () => {
  it("enters without a trip to the store, with the same token", async () => {
    const { locks, backend } = rig({ reentrant });
    const tokens: bigint[] = [];
    await locks.request("a", async (outer) => {
      tokens.push(outer.token);
      const before = backend.calls.length;
      await locks.request("a", async (inner) => {
        tokens.push(inner.token);
        await locks.request("a", (innermost) => void tokens.push(innermost.token));
      });
      expect(backend.calls.length).toBe(before);
    });
    expect(new Set(tokens).size).toBe(1);
    expect(tokens).toHaveLength(3);
  });

  it("gives the callback's result, and its error", async () => {
    const { locks } = rig({ reentrant });
    const own = new Error("own");
    await locks.request("a", async () => {
      expect(await locks.request("a", () => 7)).toBe(7);
      const nested = locks.request("a", () => {
        throw own;
      });
      expect(await rejection(nested)).toBe(own);
    });
  });

  it("does not free the lock when it ends", async () => {
    const { locks, entries } = rig({ reentrant });
    await locks.request("a", async (outer) => {
      await locks.request("a", () => {});
      expect(outer.held).toBe(true);
      expect(await entries("a")).toHaveLength(1);
    });
    expect(await entries("a")).toEqual([]);
  });

  it("that releases its lock leaves the nested section alone", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("a", async (outer) => {
      await locks.request("a", async (inner) => {
        expect(await inner.release()).toBe("released");
        expect([inner.held, outer.held]).toEqual([false, true]);
      });
    });
  });

  it("waits, as the standard says, unless both say reentrant", async () => {
    const { locks } = rig();
    const gate = deferred();
    let entered = false;
    const outer = track(
      locks.request("a", { reentrant }, async () => {
        track(locks.request("a", () => void (entered = true)));
        await gate.promise;
      }),
    );
    await settle();
    expect(entered).toBe(false);
    gate.resolve();
    await settle();
    expect([outer.status, entered]).toEqual(["fulfilled", true]);
  });

  it("of another name is a request of its own", async () => {
    const { locks, entries } = rig({ reentrant });
    await locks.request("a", () =>
      locks.request("b", async () => {
        expect(await entries("b")).toHaveLength(1);
      }),
    );
  });

  it("of another client waits", async () => {
    const one = rig({ reentrant });
    const two = one.other({ reentrant });
    await one.locks.request("a", async () => {
      expect(await two.locks.request("a", { ifAvailable: true }, (lock) => lock)).toBeNull();
    });
  });

  it("enters the innermost section through sections of other names", async () => {
    const { locks, backend } = rig({ reentrant });
    await locks.request("a", () =>
      locks.request("b", async () => {
        const before = backend.calls.length;
        await locks.request("a", (lock) => expect(lock.name).toBe("a"));
        expect(backend.calls.length).toBe(before);
      }),
    );
  });

  it("may be shared inside an exclusive one", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("a", async (outer) => {
      await locks.request("a", { mode: "shared" }, (inner) => expect(inner.token).toBe(outer.token));
    });
  });

  it("is refused when it is exclusive inside a shared one: it would wait for itself", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("a", { mode: "shared" }, async () => {
      const nested = locks.request("a", () => {});
      expect(await rejection(nested)).toMatchObject({
        code: "LOCK_UNSUPPORTED",
        lock: "a",
        backend: "memory",
      });
    });
  });

  it("has the signal of its lock, however many came before", async () => {
    const { locks, other } = rig({ reentrant });
    const victim = locks.request("a", async ({ signal }) => {
      for (let turn = 0; turn < 20_000; turn++) {
        await locks.request("a", (inner) => expect(inner.signal.aborted).toBe(false));
      }
      await other().locks.acquire("a", { steal: true });
      await settle();
      expect(signal.aborted).toBe(true);
    });
    expect(await rejection(victim)).toHaveProperty("name", "AbortError");
  });

  it("is refused when the lock is lost", async () => {
    const { locks, clock } = rig({ reentrant });
    let entered = false;
    const outer = locks.request("a", { ttl: "10s" }, async () => {
      clock.block(10_000);
      const nested = locks.request("a", () => void (entered = true));
      expect(await rejection(nested)).toMatchObject({ code: "LOCK_LOST" });
    });
    expect(await rejection(outer)).toMatchObject({ code: "LOCK_LOST" });
    expect(entered).toBe(false);
  });

  it("rejects with LOCK_LOST when the lock is lost inside it", async () => {
    const { locks, clock } = rig({ reentrant });
    const outer = locks.request("a", { ttl: "10s" }, async () => {
      const nested = locks.request("a", () => clock.block(10_000));
      expect(await rejection(nested)).toMatchObject({ code: "LOCK_LOST" });
    });
    await rejection(outer);
  });

  it("rejects with the reason of a signal that was aborted before", async () => {
    const { locks } = rig({ reentrant });
    const reason = new Error("no more");
    await locks.request("a", async () => {
      const nested = locks.request("a", { signal: AbortSignal.abort(reason) }, () => {});
      expect(await rejection(nested)).toBe(reason);
    });
  });
});

describe("reentrant sets", () => {
  it("enter what is held already and take the rest", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("b", async (outer) => {
      await locks.request(["a", "b"], (set) => {
        expect(set.tokens.get("b")).toBe(outer.token);
        expect(set.held).toBe(true);
      });
    });
  });
});

describe("steal", () => {
  it("does not go with reentrant", async () => {
    const { locks } = rig();
    const error = await rejection(locks.request("a", { steal: true, reentrant }, () => {}));
    expect(error).toHaveProperty("name", "NotSupportedError");
    expect(error instanceof LockError).toBe(false);
  });
});
