/** Reentrancy: who enters, in which order, with which token, in whose async context. */
import { AsyncLocalStorage } from "node:async_hooks";
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

describe("parallel branches of one section", () => {
  it("enter one at a time, in the order of their calls", async () => {
    const { locks } = rig({ reentrant });
    const steps: string[] = [];
    await locks.request("a", () =>
      Promise.all(
        ["1", "2", "3"].map((branch) =>
          locks.request("a", async () => {
            steps.push(`+${branch}`);
            await settle();
            steps.push(`-${branch}`);
          }),
        ),
      ),
    );
    expect(steps).toEqual(["+1", "-1", "+2", "-2", "+3", "-3"]);
  });

  it("nest further without waiting for each other's turn", async () => {
    const { locks } = rig({ reentrant });
    const steps: string[] = [];
    await locks.request("a", () =>
      Promise.all(
        ["1", "2"].map((branch) =>
          locks.request("a", async () => {
            await locks.request("a", async () => {
              await settle();
              steps.push(branch);
            });
          }),
        ),
      ),
    );
    expect(steps).toEqual(["1", "2"]);
  });

  it("go on when one of them fails", async () => {
    const { locks } = rig({ reentrant });
    const own = new Error("own");
    await locks.request("a", async () => {
      const failing = rejection(
        locks.request("a", async () => {
          await settle();
          throw own;
        }),
      );
      const next = locks.request("a", () => "next");
      expect([await failing, await next]).toEqual([own, "next"]);
    });
  });

  it("get null with ifAvailable while another is inside", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("a", async () => {
      const gate = deferred();
      const inside = locks.request("a", () => gate.promise);
      expect(await locks.request("a", { ifAvailable: true }, (lock) => lock)).toBeNull();
      gate.resolve();
      await inside;
      expect(await locks.request("a", { ifAvailable: true }, (lock) => lock?.held)).toBe(true);
    });
  });

  it("give up when their wait is over, and the next one still enters in turn", async () => {
    const { locks, clock } = rig({ reentrant });
    const gate = deferred();
    const steps: string[] = [];
    const outer = track(
      locks.request("a", async () => {
        const first = locks.request("a", async () => {
          steps.push("+1");
          await gate.promise;
          steps.push("-1");
        });
        const second = track(locks.request("a", { wait: "5s" }, () => void steps.push("2")));
        const third = locks.request("a", () => void steps.push("3"));
        await clock.advance(5_000);
        expect(second.error).toMatchObject({ code: "LOCK_TIMEOUT" });
        expect(steps).toEqual(["+1"]);
        gate.resolve();
        await Promise.all([first, third]);
      }),
    );
    await clock.advance(6_000);
    await settle();
    expect(outer.status).toBe("fulfilled");
    expect(steps).toEqual(["+1", "-1", "3"]);
  });

  it("with a wait of 0 are refused while another is inside", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("a", async () => {
      const gate = deferred();
      const inside = locks.request("a", () => gate.promise);
      expect(await rejection(locks.request("a", { wait: 0 }, () => {}))).toMatchObject({
        code: "LOCK_TIMEOUT",
      });
      gate.resolve();
      await inside;
    });
  });

  it("give up by their signal", async () => {
    const { locks } = rig({ reentrant });
    await locks.request("a", async () => {
      const gate = deferred();
      const inside = locks.request("a", () => gate.promise);
      const controller = new AbortController();
      const waiting = rejection(locks.request("a", { signal: controller.signal }, () => {}));
      controller.abort("enough");
      expect(await waiting).toBe("enough");
      gate.resolve();
      await inside;
    });
  });

  it("that were started and not awaited are inside the lock: it is freed when they have left", async () => {
    const { locks, entries } = rig({ reentrant });
    const gate = deferred();
    const outer = track(
      locks.request("a", async () => {
        track(locks.request("a", () => gate.promise));
      }),
    );
    await settle();
    expect([outer.status, (await entries("a")).length]).toEqual(["pending", 1]);
    gate.resolve();
    await settle();
    expect([outer.status, (await entries("a")).length]).toEqual(["fulfilled", 0]);
  });
});

describe("a context that outlived its section", () => {
  it("makes a request of its own", async () => {
    const { locks } = rig({ reentrant });
    const gate = deferred();
    const tokens: bigint[] = [];
    let escaped: Promise<unknown> = Promise.resolve();
    await locks.request("a", (lock) => {
      tokens.push(lock.token);
      escaped = gate.promise.then(() => locks.request("a", (later) => void tokens.push(later.token)));
    });
    gate.resolve();
    await escaped;
    expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0n);
  });

  it("waits like any other while somebody else holds", async () => {
    const { locks, other } = rig({ reentrant });
    const gate = deferred();
    let escaped = track(Promise.resolve());
    await locks.request("a", () => {
      escaped = track(gate.promise.then(() => locks.request("a", () => {})));
    });
    const holder = await other().locks.acquire("a");
    gate.resolve();
    await settle();
    expect(escaped.status).toBe("pending");
    await holder.release();
    await settle();
    expect(escaped.status).toBe("fulfilled");
  });
});

describe("the async context of a callback", () => {
  it.each([false, true])("is that of its caller, whoever released the lock (reentrant: %s)", async (flag) => {
    const { locks } = rig({ reentrant: flag });
    const storage = new AsyncLocalStorage<string>();
    const gate = deferred();
    const holder = storage.run("holder", () => locks.request("a", () => gate.promise));
    const waiter = storage.run("waiter", () => locks.request("a", () => storage.getStore()));
    storage.run("opener", () => gate.resolve());
    await holder;
    expect(await waiter).toBe("waiter");
  });

  it("of a nested request is that of its caller", async () => {
    const { locks } = rig({ reentrant });
    const storage = new AsyncLocalStorage<string>();
    await locks.request("a", async () => {
      const gate = deferred();
      const first = storage.run("first", () => locks.request("a", () => gate.promise));
      const second = storage.run("second", () => locks.request("a", () => storage.getStore()));
      storage.run("opener", () => gate.resolve());
      await first;
      expect(await second).toBe("second");
    });
  });

  it("of one who waits is not taken for that of the holder's section", async () => {
    const { locks } = rig({ reentrant });
    const gate = deferred();
    const tokens = new Set<bigint>();
    const holder = locks.request("a", (lock) => {
      tokens.add(lock.token);
      return gate.promise;
    });
    const waiter = locks.request("a", (lock) => void tokens.add(lock.token));
    gate.resolve();
    await Promise.all([holder, waiter]);
    expect(tokens.size).toBe(2);
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
