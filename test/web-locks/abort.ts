/** The signal of a request: it ends the wait, and nothing else. */
import { describe, expect } from "vitest";
import { deferred, rejection, track } from "../helpers/promises.ts";
import { hold, onStore, until } from "./case.ts";
import type { WebLocksStore } from "./suite.ts";

/** The cases. */
export function abortCases(open: () => Promise<WebLocksStore>): void {
  describe("signal", () => {
    onStore(open, "that is aborted already rejects with AbortError, and calls nothing", async ({ locks }) => {
      let called = false;
      const request = locks.request("a", { signal: AbortSignal.abort() }, () => void (called = true));
      expect(await rejection(request)).toHaveProperty("name", "AbortError");
      expect(called).toBe(false);
    });

    onStore(open, "that is aborted already rejects with its reason", async ({ locks }) => {
      for (const reason of ["text", 7, null, new Error("own"), { any: "thing" }]) {
        const request = locks.request("a", { signal: AbortSignal.abort(reason) }, () => {});
        expect(await rejection(request)).toBe(reason);
      }
    });

    onStore(open, "that never aborts changes nothing", async ({ locks }) => {
      const { signal } = new AbortController();
      expect(await locks.request("a", { signal }, () => 1)).toBe(1);
    });

    onStore(open, "aborts a request that waits", async ({ locks, others }) => {
      const held = await hold(others, "a");
      const controller = new AbortController();
      let called = false;
      const waiting = rejection(
        locks.request("a", { signal: controller.signal }, () => void (called = true)),
      );
      await until(async () => (await others.query()).pending.length === 1);
      controller.abort();
      expect(await waiting).toHaveProperty("name", "AbortError");
      held.letGo();
      await held.ended;
      expect(await locks.request("a", () => "free")).toBe("free");
      expect(called).toBe(false);
    });

    onStore(open, "rejects a request that waits with its reason", async ({ locks, others }) => {
      await hold(others, "a");
      const controller = new AbortController();
      const waiting = rejection(locks.request("a", { signal: controller.signal }, () => {}));
      const reason = new Error("own");
      controller.abort(reason);
      expect(await waiting).toBe(reason);
    });

    onStore(
      open,
      "that aborts right after the call, in the same turn, rejects and calls nothing",
      async ({ locks, others }) => {
        const controller = new AbortController();
        let called = false;
        const request = rejection(
          locks.request("a", { signal: controller.signal }, () => void (called = true)),
        );
        controller.abort("at once");
        expect(await request).toBe("at once");
        expect(await others.request("a", () => "free")).toBe("free");
        expect(called).toBe(false);
      },
    );

    onStore(open, "does nothing after the grant", async ({ locks }) => {
      const controller = new AbortController();
      const gate = deferred();
      const started = deferred();
      const request = track(
        locks.request("a", { signal: controller.signal }, async (lock) => {
          started.resolve();
          await gate.promise;
          return lock.held;
        }),
      );
      await started.promise;
      controller.abort();
      gate.resolve();
      await until(() => request.status !== "pending");
      expect(request.value).toBe(true);
    });

    onStore(open, "does nothing after the end", async ({ locks }) => {
      const controller = new AbortController();
      expect(await locks.request("a", { signal: controller.signal }, () => 1)).toBe(1);
      controller.abort();
      expect(await locks.request("a", () => 2)).toBe(2);
    });

    onStore(open, "lets those behind go on", async ({ locks, others }) => {
      const held = await hold(others, "a", { mode: "shared" });
      const controller = new AbortController();
      const writer = rejection(locks.request("a", { signal: controller.signal }, () => {}));
      await until(async () => (await others.query()).pending.length === 1);
      const reader = others.request("a", { mode: "shared" }, () => "reader");
      controller.abort();
      await writer;
      expect(await reader).toBe("reader");
      held.letGo();
    });

    onStore(
      open,
      "that several requests share ends them all, but not those that are granted",
      async ({ locks }) => {
        const controller = new AbortController();
        const { signal } = controller;
        const gate = deferred();
        const started = deferred();
        const first = locks.request("a", { signal }, async () => {
          started.resolve();
          await gate.promise;
          return "first";
        });
        const rest = [0, 1, 2].map(() => rejection(locks.request("a", { signal }, () => {})));
        await started.promise;
        controller.abort("all");
        expect(await Promise.all(rest)).toEqual(["all", "all", "all"]);
        gate.resolve();
        expect(await first).toBe("first");
      },
    );
  });
}
