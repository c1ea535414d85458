/** Arguments, names and the life of a lock: held from the callback's start until what it returned has settled. */
import { describe, expect } from "vitest";
import { Lock } from "../../src/core/lock.ts";
import { deferred, rejection } from "../helpers/promises.ts";
import { untyped } from "../helpers/untyped.ts";
import { hold, onStore } from "./case.ts";
import type { WebLocksStore } from "./suite.ts";

/** The cases. */
export function callbackCases(open: () => Promise<WebLocksStore>): void {
  describe("arguments", () => {
    const bad: [string, readonly unknown[]][] = [
      ["no arguments", []],
      ["a name alone", ["a"]],
      ["options without a callback", ["a", {}]],
      ["undefined as the callback", ["a", undefined]],
      ["null as the callback", ["a", {}, null]],
      ["text as the callback", ["a", {}, "callback"]],
      ["a number as the callback", ["a", 123]],
      ["a mode that does not exist", ["a", { mode: "foo" }, ignore]],
      ["null as the mode", ["a", { mode: null }, ignore]],
      ["a signal of another type", ["a", { signal: "signal" }, ignore]],
      ["null as the signal", ["a", { signal: null }, ignore]],
    ];
    for (const [what, args] of bad) {
      onStore(open, `reject with a TypeError, and never throw: ${what}`, async ({ locks }) => {
        expect(await rejection(untyped(locks).request(...args))).toBeInstanceOf(TypeError);
      });
    }

    const ruledOut: [string, object][] = [
      ["steal and ifAvailable", { steal: true, ifAvailable: true }],
      ["steal and shared", { mode: "shared", steal: true }],
      ["signal and steal", { signal: new AbortController().signal, steal: true }],
      ["signal and ifAvailable", { signal: new AbortController().signal, ifAvailable: true }],
    ];
    for (const [what, options] of ruledOut) {
      onStore(open, `reject with NotSupportedError: ${what}`, async ({ locks }) => {
        const error = await rejection(untyped(locks).request("a", options, ignore));
        expect(error).toBeInstanceOf(DOMException);
        expect(error).toHaveProperty("name", "NotSupportedError");
      });
    }

    onStore(open, "of which the options are undefined are as none", async ({ locks }) => {
      expect(await untyped(locks).request("a", undefined, () => 1)).toBe(1);
    });
  });

  describe("the callback", () => {
    onStore(open, "is called with one argument and without a this", async ({ locks }) => {
      const calls: unknown[] = [];
      const seen = function (this: unknown, ...args: unknown[]): void {
        calls.push([this, args.length]);
      };
      await locks.request("a", seen);
      await locks.request("a", { reentrant: true }, seen);
      await locks.request(["a", "b"], seen);
      await locks.semaphore("s", 1).request(seen);
      await hold(locks, "a");
      await locks.request("a", { ifAvailable: true }, seen);
      expect(calls).toEqual(calls.map(() => [undefined, 1]));
      expect(calls).toHaveLength(5);
    });
  });

  describe("names", () => {
    for (const name of ["-", "-foo"]) {
      onStore(open, `that start with - reject with NotSupportedError: ${name}`, async ({ locks }) => {
        expect(await rejection(locks.request(name, ignore))).toHaveProperty("name", "NotSupportedError");
      });
    }

    onStore(open, "must not be empty (a fleet's own rule)", async ({ locks }) => {
      expect(await rejection(locks.request("", ignore))).toBeInstanceOf(TypeError);
    });

    const allowed = [
      "foo",
      "\u{1f512}",
      "é",
      "e\u0301",
      "*",
      "a-b",
      " ",
      "\n",
      "{a}",
      "../a",
      "constructor",
      "x".repeat(512),
    ];
    for (const name of allowed) {
      onStore(open, `may be any other text: ${JSON.stringify(name.slice(0, 20))}`, async ({ locks }) => {
        expect(await locks.request(name, (lock) => lock.name)).toBe(name);
      });
    }

    onStore(
      open,
      "are compared exactly: neither case nor normal form is folded",
      async ({ locks, others }) => {
        for (const name of ["foo", "é", "a"]) await hold(locks, name);
        for (const name of ["FOO", "e\u0301", "a "]) {
          expect(await others.request(name, { ifAvailable: true }, (lock) => lock?.name)).toBe(name);
        }
      },
    );
  });

  describe("the callback", () => {
    onStore(open, "gets a Lock with its name and mode", async ({ locks }) => {
      await locks.request("a", (lock) => {
        expect(lock).toBeInstanceOf(Lock);
        expect([lock.name, lock.mode]).toEqual(["a", "exclusive"]);
      });
      await locks.request("a", { mode: "shared" }, (lock) => expect(lock.mode).toBe("shared"));
    });

    onStore(
      open,
      "gets what calls itself a Lock, from what calls itself a LockManager",
      async ({ locks }) => {
        const named = (object: unknown): string => Object.prototype.toString.call(object);
        expect(await locks.request("a", named)).toBe("[object Lock]");
        expect(named(locks)).toBe("[object LockManager]");
      },
    );

    onStore(open, "gets a Lock of its own each time", async ({ locks }) => {
      const first = await locks.request("a", (lock) => lock);
      const second = await locks.request("a", (lock) => lock);
      expect(first).not.toBe(second);
    });

    onStore(open, "is not called before request has returned", async ({ locks }) => {
      let returned = false;
      const request = locks.request("a", () => returned);
      returned = true;
      expect(await request).toBe(true);
    });

    onStore(open, "that returns a value makes it the result", async ({ locks }) => {
      expect(await locks.request("a", () => 42)).toBe(42);
    });

    onStore(open, "that returns a promise makes its value the result", async ({ locks }) => {
      expect(await locks.request("a", async () => "later")).toBe("later");
    });

    onStore(open, "that throws rejects the request with the same error", async ({ locks }) => {
      const own = new RangeError("own");
      const request = locks.request("a", () => {
        throw own;
      });
      expect(await rejection(request)).toBe(own);
    });

    onStore(open, "whose promise rejects rejects the request with the same value", async ({ locks }) => {
      const own = { not: "an error" };
      expect(await rejection(locks.request("a", () => Promise.reject(own)))).toBe(own);
    });

    onStore(open, "that failed has freed the lock", async ({ locks, others }) => {
      await rejection(locks.request("a", () => Promise.reject(new Error("own"))));
      expect(await others.request("a", { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    });
  });

  describe("a lock", () => {
    onStore(open, "is held until the callback's promise settles", async ({ locks, others }) => {
      const held = await hold(locks, "a");
      expect(await others.request("a", { ifAvailable: true }, (lock) => lock)).toBeNull();
      held.letGo();
      await held.ended;
      expect(await others.request("a", { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    });

    onStore(open, "is freed before the request's promise is fulfilled", async ({ locks, others }) => {
      await locks.request("a", ignore);
      expect((await others.query()).held).toEqual([]);
    });

    onStore(open, "is not granted to two clients at once", async ({ locks, others }) => {
      let inside = 0;
      let most = 0;
      const work = async (): Promise<void> => {
        inside += 1;
        most = Math.max(most, inside);
        await Promise.resolve();
        inside -= 1;
      };
      const all = Array.from({ length: 40 }, (_, index) => (index % 2 ? locks : others).request("a", work));
      await Promise.all(all);
      expect(most).toBe(1);
    });

    onStore(open, "of one name does not wait for that of another", async ({ locks }) => {
      const gate = deferred();
      const a = locks.request("a", () => gate.promise);
      expect(await locks.request("b", () => "b")).toBe("b");
      gate.resolve();
      await a;
    });

    onStore(open, "is granted in the order of the calls", async ({ locks }) => {
      const order: number[] = [];
      const all = Array.from({ length: 20 }, (_, index) => locks.request("a", () => void order.push(index)));
      await Promise.all(all);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      expect(order).toHaveLength(20);
    });
  });
}

function ignore(): void {}
