/** The picture that query gives. */
import { describe, expect } from "vitest";
import { deferred, track } from "../helpers/promises.ts";
import { hold, onStore, until } from "./case.ts";
import type { WebLocksStore } from "./suite.ts";

/** The cases. */
export function queryCases(open: () => Promise<WebLocksStore>): void {
  describe("query", () => {
    onStore(open, "is two empty lists when nothing was asked for", async ({ locks }) => {
      expect(await locks.query()).toEqual({ held: [], pending: [] });
    });

    onStore(open, "shows name, mode and clientId of what is held", async ({ locks }) => {
      await hold(locks, "a");
      await hold(locks, "b", { mode: "shared" });
      const { held } = await locks.query();
      expect(held).toMatchObject([
        { name: "a", mode: "exclusive", clientId: locks.clientId },
        { name: "b", mode: "shared", clientId: locks.clientId },
      ]);
    });

    onStore(open, "shows each of several shared holders", async ({ locks }) => {
      await hold(locks, "a", { mode: "shared" });
      await hold(locks, "a", { mode: "shared" });
      expect((await locks.query()).held).toHaveLength(2);
    });

    onStore(open, "shows what was asked for before it in the same turn", async ({ locks }) => {
      const gate = deferred();
      const first = locks.request("a", () => gate.promise);
      const second = locks.request("a", () => {});
      const { held, pending } = await locks.query();
      expect([held.length, pending.length]).toEqual([1, 1]);
      gate.resolve();
      await Promise.all([first, second]);
    });

    onStore(open, "shows those who wait in the order of their requests", async ({ locks }) => {
      const held = await hold(locks, "a");
      const modes = ["shared", "exclusive", "shared", "exclusive"] as const;
      const waiting = modes.map((mode) => locks.request("a", { mode }, () => {}));
      const { pending } = await locks.query();
      expect(pending.map(({ mode }) => mode)).toEqual(modes);
      held.letGo();
      await Promise.all(waiting);
    });

    onStore(
      open,
      "gives the same clientId to all requests of a client, and others to others",
      async ({ locks, others }) => {
        await hold(locks, "a");
        await hold(locks, "b");
        await hold(others, "c");
        const { held } = await locks.query();
        const ids = new Map(held.map(({ name, clientId }) => [name, clientId]));
        expect(ids.get("a")).toBe(ids.get("b"));
        expect(ids.get("a")).not.toBe(ids.get("c"));
      },
    );

    onStore(open, "shows a circle of waits, so that a deadlock can be seen", async ({ locks, others }) => {
      const a = await hold(locks, "a");
      const b = await hold(others, "b");
      track(locks.request("b", () => {}));
      track(others.request("a", () => {}));
      await until(async () => (await locks.query()).pending.length === 2);
      const { held, pending } = await locks.query();
      const holderOf = new Map(held.map(({ name, clientId }) => [name, clientId]));
      const waitsFor = new Map(pending.map(({ name, clientId }) => [clientId, holderOf.get(name)]));
      expect(waitsFor.get(locks.clientId)).toBe(others.clientId);
      expect(waitsFor.get(others.clientId)).toBe(locks.clientId);
      a.letGo();
      b.letGo();
    });

    onStore(open, "shows the move from pending to held to nothing", async ({ locks, others }) => {
      const first = await hold(locks, "a");
      const second = hold(others, "a");
      await until(async () => (await locks.query()).pending.length === 1);
      first.letGo();
      const { lock, letGo, ended } = await second;
      expect((await locks.query()).held).toMatchObject([{ clientId: others.clientId, token: lock.token }]);
      letGo();
      await ended;
      expect(await locks.query()).toEqual({ held: [], pending: [] });
    });

    onStore(open, "does not show a request that was aborted", async ({ locks, others }) => {
      await hold(locks, "a");
      const controller = new AbortController();
      track(others.request("a", { signal: controller.signal }, () => {}));
      await until(async () => (await locks.query()).pending.length === 1);
      controller.abort();
      await until(async () => (await locks.query()).pending.length === 0);
      expect((await locks.query()).held).toHaveLength(1);
    });

    onStore(open, "is a picture: what happens later does not change it", async ({ locks }) => {
      const held = await hold(locks, "a");
      const before = await locks.query();
      held.letGo();
      await held.ended;
      expect(before.held).toHaveLength(1);
    });
  });
}
