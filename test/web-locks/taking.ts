/** What the Web Locks standard says about ifAvailable and steal. */
import { describe, expect } from "vitest";
import { deferred, rejection, track, type Watched } from "../helpers/promises.ts";
import { hold, onStore, until } from "./case.ts";
import type { WebLocksStore } from "./suite.ts";

/** The cases. */
export function takingCases(open: () => Promise<WebLocksStore>): void {
  describe("ifAvailable", () => {
    onStore(open, "gives the lock when it is free", async ({ locks }) => {
      expect(await locks.request("a", { ifAvailable: true }, (lock) => lock?.name)).toBe("a");
    });

    onStore(open, "gives null when it is held, by the same client or another", async ({ locks, others }) => {
      await hold(locks, "a");
      for (const client of [locks, others]) {
        expect(await client.request("a", { ifAvailable: true }, (lock) => lock)).toBeNull();
      }
    });

    onStore(open, "gives the callback's result also when it got null", async ({ locks, others }) => {
      await hold(locks, "a");
      expect(await others.request("a", { ifAvailable: true }, () => "anyway")).toBe("anyway");
      const own = new Error("own");
      const failing = others.request("a", { ifAvailable: true }, () => Promise.reject(own));
      expect(await rejection(failing)).toBe(own);
    });

    onStore(open, "leaves nothing in the queue when it got null", async ({ locks, others }) => {
      const held = await hold(locks, "a");
      const gate = deferred();
      let got: unknown = "no answer";
      const refused = others.request("a", { ifAvailable: true }, (lock) => {
        got = lock;
        return gate.promise;
      });
      // On a network the refusal may take longer than the release.
      await until(() => got === null);
      held.letGo();
      await held.ended;
      expect(await locks.request("a", { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
      gate.resolve();
      await refused;
    });

    onStore(
      open,
      "gives a shared lock beside shared ones, and null beside an exclusive one",
      async ({ locks, others }) => {
        const reader = await hold(locks, "a", { mode: "shared" });
        const shared = { mode: "shared", ifAvailable: true } as const;
        expect(await others.request("a", shared, (lock) => lock?.mode)).toBe("shared");
        expect(await others.request("a", { ifAvailable: true }, (lock) => lock)).toBeNull();
        const writer = track(locks.request("a", () => {}));
        await until(async () => (await others.query()).pending.length === 1);
        expect(await others.request("a", shared, (lock) => lock)).toBeNull();
        reader.letGo();
        await until(() => writer.status === "fulfilled");
      },
    );
  });

  describe("steal", () => {
    onStore(open, "takes a lock that is free", async ({ locks }) => {
      expect(await locks.request("a", { steal: true }, (lock) => lock.name)).toBe("a");
    });

    onStore(
      open,
      "takes a lock that another holds, whose request rejects with AbortError",
      async ({ locks, others }) => {
        const victim = await hold(locks, "a");
        const ended = rejection(victim.ended);
        expect(await others.request("a", { steal: true }, (lock) => lock.held)).toBe(true);
        const error = await ended;
        expect(error).toBeInstanceOf(DOMException);
        expect(error).toHaveProperty("name", "AbortError");
      },
    );

    onStore(open, "does not end the callback of the one it was stolen from", async ({ locks, others }) => {
      const gate = deferred();
      const started = deferred();
      let finished = false;
      const victim = rejection(
        locks.request("a", async () => {
          started.resolve();
          await gate.promise;
          finished = true;
        }),
      );
      await started.promise;
      await others.request("a", { steal: true }, () => {});
      await victim;
      expect(finished).toBe(false);
      gate.resolve();
      await until(() => finished);
    });

    onStore(open, "is held although the victim's callback ends", async ({ locks, others }) => {
      const victim = await hold(locks, "a");
      const ended = rejection(victim.ended);
      await others.request("a", { steal: true }, async (lock) => {
        await ended;
        victim.letGo();
        expect(await locks.request("a", { ifAvailable: true }, (other) => other)).toBeNull();
        expect(lock.held).toBe(true);
      });
    });

    onStore(open, "goes ahead of those who wait, who are granted later", async ({ locks, others }) => {
      const order: string[] = [];
      const victim = await hold(locks, "a");
      const ended = rejection(victim.ended);
      const waiting = ["w1", "w2"].map((name) => locks.request("a", () => void order.push(name)));
      await until(async () => (await others.query()).pending.length === 2);
      await others.request("a", { steal: true }, () => void order.push("thief"));
      await Promise.all([ended, ...waiting]);
      expect(order).toEqual(["thief", "w1", "w2"]);
    });

    onStore(open, "can be done again and again, the last one holds", async ({ locks, others }) => {
      const thieves: Watched<void>[] = [];
      for (const client of [locks, others, locks]) {
        const started = deferred();
        thieves.push(
          track(
            client.request("a", { steal: true }, async () => {
              started.resolve();
              await new Promise<void>(() => {});
            }),
          ),
        );
        await started.promise;
      }
      await until(() => thieves.filter(({ status }) => status === "rejected").length === 2);
      expect(thieves.map(({ status }) => status)).toEqual(["rejected", "rejected", "pending"]);
      expect((await locks.query()).held).toHaveLength(1);
    });
  });
}
