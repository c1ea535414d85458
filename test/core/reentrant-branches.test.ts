/** Parallel branches of one section, contexts that outlive it, and in whose context a callback runs. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const reentrant = true;

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
      const steps: string[] = [];
      const refused = locks.request("a", { ifAvailable: true }, (lock) => {
        steps.push("called");
        return lock;
      });
      steps.push("returned");
      expect(await refused).toBeNull();
      gate.resolve();
      await inside;
      expect(steps).toEqual(["returned", "called"]);
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
