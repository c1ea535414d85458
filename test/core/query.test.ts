/** Who holds and who waits, as query shows it. */
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { LockManager } from "../../src/core/manager.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

describe("query", () => {
  it("is empty when nothing is asked for", async () => {
    const { locks } = rig();
    expect(await locks.query()).toEqual({ held: [], pending: [] });
  });

  it("shows what a fleet wants to know", async () => {
    const { locks, clock } = rig({ clientId: "me", label: "billing" });
    const lock = await locks.acquire("a", { ttl: "10s", metadata: "order 42" });
    const start = clock.wallMs();
    clock.block(1_000);
    expect(await locks.query()).toEqual({
      held: [
        {
          name: "a",
          mode: "exclusive",
          clientId: "me",
          token: lock.token,
          owner: { host: hostname(), pid: process.pid, label: "billing" },
          since: new Date(start),
          expiresInMs: 9_000,
          metadata: "order 42",
        },
      ],
      pending: [],
    });
  });

  it("tells holders from waiters, each in the order of their tokens, across names", async () => {
    const { locks, other } = rig({ clientId: "me" });
    await other({ clientId: "reader" }).locks.acquire("b", { mode: "shared" });
    await locks.acquire("a");
    track(locks.acquire("b"));
    track(locks.acquire("a"));
    track(locks.acquire("b", { mode: "shared" }));
    await settle();
    const { held, pending } = await locks.query();
    expect(held.map(({ name, clientId }) => `${clientId} ${name}`)).toEqual(["reader b", "me a"]);
    expect(pending.map(({ name, mode }) => `${name} ${mode}`)).toEqual([
      "b exclusive",
      "a exclusive",
      "b shared",
    ]);
  });

  it("shows the token that a waiter will have", async () => {
    const { locks } = rig();
    const holder = await locks.acquire("a");
    const waiter = track(locks.acquire("a"));
    const { pending } = await locks.query();
    await holder.release();
    await settle();
    expect(waiter.value?.token).toBe(pending[0]?.token);
  });

  it("shows permits with their weight, under the name of the semaphore", async () => {
    const { locks } = rig();
    await locks.semaphore("s", 3).acquire({ weight: 2 });
    track(locks.semaphore("s", 3).acquire({ weight: 2 }));
    const { held, pending } = await locks.query();
    expect(held).toMatchObject([{ name: "s", weight: 2, permits: 3 }]);
    expect(pending).toMatchObject([{ name: "s", weight: 2, permits: 3 }]);
  });

  it("gives only names that start with a prefix", async () => {
    const { locks } = rig();
    for (const name of ["order:1", "order:2", "job"]) await locks.acquire(name);
    await locks.semaphore("order:3", 1).acquire();
    const { held } = await locks.query({ prefix: "order:" });
    expect(held.map(({ name }) => name)).toEqual(["order:1", "order:2", "order:3"]);
  });

  it("comes after the requests that were made before it, although the store answers late", async () => {
    const { locks, backend, clock } = rig({ traits: { callOrder: false } });
    backend.hooks.append = async (send) => {
      await new Promise<void>((resolve) => clock.after(50, resolve));
      return send();
    };
    for (let index = 0; index < 3; index++) track(locks.acquire("a"));
    const snapshot = track(locks.query());
    await clock.advance(500);
    expect(snapshot.value?.held).toHaveLength(1);
    expect(snapshot.value?.pending).toHaveLength(2);
  });

  it("does not show what has expired", async () => {
    const { locks, clock, plant } = rig();
    plant("a", { ttlMs: 1_000 });
    clock.block(1_000);
    expect(await locks.query()).toEqual({ held: [], pending: [] });
  });

  it("shows many names", async () => {
    const { locks } = rig();
    await Promise.all(Array.from({ length: 200 }, (_, index) => locks.acquire(`a${index}`)));
    expect((await locks.query()).held).toHaveLength(200);
  });

  it("is refused where a store cannot name its queues", async () => {
    const { backend } = rig();
    const mute = new LockManager({
      name: "mute",
      traits: backend.traits,
      append: (queue, entry) => backend.append(queue, entry),
      renew: (renewals) => backend.renew(renewals),
      remove: (queue, id) => backend.remove(queue, id),
      list: (queue) => backend.list(queue),
      watch: (queue, self, target, onChange) => backend.watch(queue, self, target, onChange),
      close: () => backend.close(),
    });
    expect(await rejection(mute.query())).toMatchObject({ code: "LOCK_UNSUPPORTED", backend: "mute" });
  });
});
