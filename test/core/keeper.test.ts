/** Renewal: batched, in time, and what each of its outcomes means. */
import { describe, expect, it } from "vitest";
import type { Renewal, Renewed } from "../../src/core/backend.ts";
import { marginMs } from "../../src/core/keeper.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { hanging, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const ttl = "12s";

describe("renewal", () => {
  it("keeps a lock far beyond its ttl", async () => {
    const { locks, clock, entries } = rig();
    const lock = await locks.acquire("a", { ttl });
    await clock.advance(3_600_000);
    expect(lock.held).toBe(true);
    expect((await entries("a"))[0]?.seq).toBe(lock.token);
  });

  it("is asked for after a quarter to a third of the ttl", async () => {
    const { locks, clock, backend } = rig();
    await locks.acquire("a", { ttl });
    await clock.advance(2_999);
    expect(backend.count("renew")).toBe(0);
    await clock.advance(1_001);
    expect(backend.count("renew")).toBe(1);
  });

  it("takes all entries of one ttl in one call, also those that joined a little later", async () => {
    const { locks, clock, backend } = rig();
    for (let index = 0; index < 50; index++) {
      await locks.acquire(`a${index}`, { ttl });
      await clock.advance(5);
    }
    await clock.advance(4_000);
    expect(backend.calls.filter(({ method }) => method === "renew").map(({ size }) => size)).toEqual([50]);
  });

  it("gives the store the same object each time for the same entry, and another one for another", async () => {
    const { locks, clock, backend } = rig();
    const asked: Renewal[] = [];
    backend.hooks.renew = (send, renewals) => {
      asked.push(...renewals);
      return send();
    };
    const first = await locks.acquire("a", { ttl });
    await clock.advance(8_000);
    await first.release();
    await locks.acquire("a", { ttl });
    await clock.advance(4_000);
    const [one, again, other] = asked;
    expect([asked.length, again === one, other === one]).toEqual([3, true, false]);
  });

  it("follows the life that the store gives, where that is far shorter than the ttl", async () => {
    const { locks, clock, backend } = rig();
    // A store that keeps an entry for no longer than a session of five seconds, whatever the ttl.
    const lifeMs = 5_000;
    backend.hooks.append = async (send) => {
      const said = await send();
      return said === null ? null : { ...said, self: { ...said.self, expiresInMs: lifeMs, ageMs: 0 } };
    };
    backend.hooks.renew = async (send) => {
      const answers = await send();
      return answers.map((answer) =>
        answer.outcome === "renewed" ? { ...answer, expiresInMs: lifeMs } : answer,
      );
    };
    const lock = await locks.acquire("a", { ttl: "1m" });
    await clock.advance(300_000);
    expect(lock.held).toBe(true);
  });

  it("is asked for soon where the store says that nothing is left of a waiter's life", async () => {
    const { locks, clock, backend, other } = rig();
    const holder = await other().locks.acquire("a", { ttl });
    let spent = true;
    backend.hooks.append = async (send) => {
      const said = await send();
      if (said === null || !spent) return said;
      spent = false;
      return { ...said, self: { ...said.self, expiresInMs: 0, ageMs: 0 } };
    };
    const waiter = track(locks.acquire("a", { ttl }));
    await clock.advance(340);
    expect(backend.count("renew")).toBe(1);
    await clock.advance(60_000);
    expect(backend.count("renew")).toBeLessThan(30);
    await holder.release();
    await clock.advance(1);
    expect(waiter.status).toBe("fulfilled");
  });

  it("is sent in calls of 500 at most", async () => {
    const { locks, clock, backend } = rig();
    const all = Array.from({ length: 1_201 }, (_, index) => locks.acquire(`a${index}`, { ttl }));
    await Promise.all(all);
    await clock.advance(4_000);
    const sizes = backend.calls.filter(({ method }) => method === "renew").map(({ size }) => size);
    expect(sizes).toEqual([500, 500, 201]);
  });

  it("keeps waiters in the queue, too", async () => {
    const { locks, clock, entries, other } = rig();
    const holder = await other().locks.acquire("a", { ttl });
    const waiter = track(locks.acquire("a", { ttl }));
    await clock.advance(60_000);
    const [, second] = await entries("a");
    expect(second?.seq).toBe(holder.token + 1n);
    await holder.release();
    await settle();
    expect(waiter.value?.token).toBe(holder.token + 1n);
  });

  it("counts validity from before it was sent, not from its answer", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    let sentAt = 0;
    backend.hooks.renew = async (send) => {
      sentAt = clock.now();
      const answer = await send();
      await new Promise<void>((resolve) => clock.after(1_000, resolve));
      return answer;
    };
    await clock.advance(5_000);
    expect(sentAt).toBeGreaterThan(0);
    expect(clock.now() + lock.validForMs).toBeCloseTo(sentAt + 12_000 - marginMs(12_000), 6);
  });

  it("that finds the entry gone loses the lock at once, and says why", async () => {
    const { locks, clock, erase, entries } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    const [entry] = await entries("a");
    erase("a", entry?.id ?? "");
    await clock.advance(4_000);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", lock: "a", backend: "memory" });
    expect(signal.reason).toHaveProperty("message", expect.stringContaining("the store does not have it"));
  });

  it("that finds a waiter gone puts it at the tail again", async () => {
    const { locks, clock, erase, entries, other } = rig();
    await other().locks.acquire("a", { ttl: "1h" });
    track(locks.acquire("a", { ttl }));
    await settle();
    const [, waiting] = await entries("a");
    erase("a", waiting?.id ?? "");
    await clock.advance(4_000);
    const [, again] = await entries("a");
    expect(again?.id).toBe(waiting?.id);
    expect(again?.seq).toBeGreaterThan(waiting?.seq ?? 0n);
  });

  it("stays on a grid of its own for each client, so that clients do not renew in step", async () => {
    const one = rig({ random: () => 0.1 });
    const two = one.other({ random: () => 0.9 });
    await one.locks.acquire("a", { ttl });
    await two.locks.acquire("b", { ttl });
    const moments: number[] = [];
    for (const { backend } of [one, two]) {
      backend.hooks.renew = (send) => {
        moments.push(one.clock.now());
        return send();
      };
    }
    await one.clock.advance(4_000);
    expect(new Set(moments).size).toBe(2);
  });
});

describe("a renewal whose outcome is unknown", () => {
  it.each<[string, () => Promise<readonly Renewed[]>]>([
    ["rejects", () => Promise.reject(new Error("reset"))],
    ["says so", async () => [{ outcome: "unknown" }]],
    ["answers for too few", async () => []],
    ["hangs", () => hanging()],
  ])("changes nothing until the local deadline, and then loses the lock: it %s", async (_how, renew) => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    backend.hooks.renew = renew;
    const deadline = 12_000 - marginMs(12_000);
    await clock.advance(deadline - 1);
    expect([lock.held, signal.aborted]).toEqual([true, false]);
    await clock.advance(1);
    expect([lock.held, signal.aborted]).toEqual([false, true]);
  });

  it("loses the lock before the store could grant it to another", async () => {
    const { locks, clock, backend, other } = rig();
    const lock = await locks.acquire("a", { ttl });
    const { signal } = lock;
    backend.hooks.renew = () => hanging();
    let heldBoth = false;
    const next = other().locks.request("a", () => {
      heldBoth = lock.held || !signal.aborted;
    });
    await clock.advance(13_000);
    await next;
    expect(heldBoth).toBe(false);
  });

  it("is tried again soon", async () => {
    const { locks, clock, backend } = rig();
    const lock = await locks.acquire("a", { ttl });
    let renewals = 0;
    backend.hooks.renew = (send) => (++renewals <= 3 ? Promise.reject(new Error("reset")) : send());
    await clock.advance(11_000);
    expect(renewals).toBeGreaterThanOrEqual(4);
    await clock.advance(60_000);
    expect(lock.held).toBe(true);
  });

  it("does not stop the renewals of other locks", async () => {
    const { locks, clock, backend } = rig();
    const [a, b] = [await locks.acquire("a", { ttl }), await locks.acquire("b", { ttl: "60s" })];
    backend.hooks.renew = (send, renewals) =>
      renewals.some(({ queue }) => queue === "a") ? hanging() : send();
    await clock.advance(300_000);
    expect([a.held, b.held]).toEqual([false, true]);
  });
});
