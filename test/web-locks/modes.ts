/** Shared and exclusive requests in one queue. */
import { describe, expect } from "vitest";
import { deferred, track } from "../helpers/promises.ts";
import { hold, onStore, until } from "./case.ts";
import type { WebLocksStore } from "./suite.ts";

/** The cases. */
export function modeCases(open: () => Promise<WebLocksStore>): void {
  describe("modes", () => {
    onStore(open, "shared ones are held together, by several clients", async ({ locks, others }) => {
      const holds = [
        await hold(locks, "a", { mode: "shared" }),
        await hold(locks, "a", { mode: "shared" }),
        await hold(others, "a", { mode: "shared" }),
      ];
      expect(holds.map(({ lock }) => lock.held)).toEqual([true, true, true]);
    });

    onStore(open, "an exclusive one waits for all shared ones ahead", async ({ locks, others }) => {
      const one = await hold(locks, "a", { mode: "shared" });
      const two = await hold(others, "a", { mode: "shared" });
      const writer = track(locks.request("a", () => {}));
      one.letGo();
      await one.ended;
      expect(writer.status).toBe("pending");
      two.letGo();
      await until(() => writer.status === "fulfilled");
    });

    onStore(
      open,
      "a shared one waits for an exclusive one ahead that waits itself",
      async ({ locks, others }) => {
        const order: string[] = [];
        const reader = await hold(locks, "a", { mode: "shared" });
        const writer = locks.request("a", () => void order.push("writer"));
        await until(async () => (await others.query()).pending.length === 1);
        const late = others.request("a", { mode: "shared" }, () => void order.push("reader"));
        await until(async () => (await others.query()).pending.length === 2);
        expect(order).toEqual([]);
        reader.letGo();
        await Promise.all([writer, late]);
        expect(order).toEqual(["writer", "reader"]);
      },
    );

    onStore(
      open,
      "shared ones that stand together behind an exclusive one are granted together",
      async ({ locks }) => {
        const writer = await hold(locks, "a");
        let inside = 0;
        const both = deferred();
        const readers = [0, 1].map(() =>
          locks.request("a", { mode: "shared" }, async () => {
            inside += 1;
            if (inside === 2) both.resolve();
            await both.promise;
          }),
        );
        writer.letGo();
        await Promise.all(readers);
        expect(inside).toBe(2);
      },
    );

    onStore(open, "an exclusive one is alone, whatever stands around it", async ({ locks, others }) => {
      const inside = { readers: 0, writers: 0 };
      const broken: string[] = [];
      const all = Array.from({ length: 60 }, (_, index) => {
        const mode = index % 3 === 0 ? "exclusive" : "shared";
        const kind = mode === "shared" ? "readers" : "writers";
        return (index % 2 ? locks : others).request("a", { mode }, async () => {
          inside[kind] += 1;
          if (inside.writers > 1 || (inside.writers === 1 && inside.readers > 0)) broken.push(mode);
          await Promise.resolve();
          inside[kind] -= 1;
        });
      });
      await Promise.all(all);
      expect(broken).toEqual([]);
    });
  });
}
