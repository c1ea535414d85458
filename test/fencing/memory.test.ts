/** The guard in the process: the table of cases, writes that take their time, and bounded memory. */
import { describe, expect, it } from "vitest";
import { memoryGuard, type MemoryGuard } from "../../src/fencing/index.ts";
import { guardCases } from "./guard-cases.ts";

guardCases(
  "memory",
  async () => {
    const guard = memoryGuard();
    let value: string | null = null;
    return {
      // A write of several turns, so that another can arrive in the middle of it.
      write: (token, next) =>
        guard.write("row", token, async () => {
          await Promise.resolve();
          value = next;
        }),
      read: async () => value,
      show: (token) => guard.show("row", token),
      highest: () => guard.highest("row"),
      restart: null,
    };
  },
  false,
);

/** A write that ends when it is told to. */
function slow(
  guard: MemoryGuard,
  token: bigint,
  wait?: number,
): {
  readonly done: Promise<string>;
  readonly begun: () => boolean;
  readonly signal: () => AbortSignal | undefined;
  readonly end: () => void;
} {
  let end: () => void = () => {};
  let signal: AbortSignal | undefined;
  const gate = new Promise<void>((resolve) => {
    end = resolve;
  });
  const done = guard.write(
    "row",
    token,
    async (given) => {
      signal = given;
      await gate;
      return `written by ${token}`;
    },
    wait === undefined ? {} : { wait },
  );
  done.catch(() => {});
  return { done, begun: () => signal !== undefined, signal: () => signal, end };
}

describe("writes under way", () => {
  it("a write begins before the call returns if nothing is under way", () => {
    const guard = memoryGuard();
    let written = false;
    void guard.write("row", 1n, () => {
      written = true;
    });
    expect(written).toBe(true);
  });

  it("a newer write waits for the older one that has begun, whose signal tells it", async () => {
    const guard = memoryGuard();
    const old = slow(guard, 33n);
    expect(old.signal()?.aborted).toBe(false);
    const fresh = slow(guard, 34n);
    expect(fresh.begun()).toBe(false);
    expect(old.signal()?.aborted).toBe(true);
    expect(old.signal()?.reason).toMatchObject({ code: "LOCK_STALE_TOKEN" });
    old.end();
    // It was let in before the newer token came, and was written before the newer write: that is no stale write.
    expect(await old.done).toBe("written by 33");
    fresh.end();
    expect(await fresh.done).toBe("written by 34");
  });

  it("an older token is refused from the moment a newer one arrives, not from its write on", async () => {
    const guard = memoryGuard();
    const first = slow(guard, 30n);
    const waiting = slow(guard, 33n);
    const fresh = slow(guard, 34n);
    await expect(waiting.done).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    await expect(slow(guard, 33n).done).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    expect(waiting.begun()).toBe(false);
    first.end();
    fresh.end();
    expect(await fresh.done).toBe("written by 34");
  });

  it("a turn that has come does not begin if a newer token arrives at that moment", async () => {
    const guard = memoryGuard();
    const first = slow(guard, 30n);
    const second = slow(guard, 31n);
    first.end();
    // The first has ended, the second has its turn, and neither has the second begun.
    const fresh = first.done.then(() => slow(guard, 34n));
    await expect(second.done).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    expect(second.begun()).toBe(false);
    (await fresh).end();
    expect(await (await fresh).done).toBe("written by 34");
  });

  it("a write that fails lets the next one go, and its token counts", async () => {
    const guard = memoryGuard();
    const failing = guard.write("row", 34n, () => Promise.reject(new Error("disk full")));
    await expect(failing).rejects.toThrow("disk full");
    await expect(guard.write("row", 33n, () => "late")).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    expect(await guard.write("row", 34n, () => "again")).toBe("again");
  });

  it("a write that never ends does not keep others for ever: they give up, and nothing is written", async () => {
    const guard = memoryGuard();
    slow(guard, 33n);
    const fresh = slow(guard, 34n, 0);
    await expect(fresh.done).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    expect(fresh.begun()).toBe(false);
  });

  it("resources do not wait for each other", async () => {
    const guard = memoryGuard();
    slow(guard, 33n);
    expect(await guard.write("other row", 1n, () => "written")).toBe("written");
  });
});

describe("bounded memory", () => {
  it("forgets what was not used for longest, and never lets a stale write in for it", async () => {
    const guard = memoryGuard({ capacity: 3 });
    for (const [name, token] of [
      ["a", 10n],
      ["b", 40n],
      ["c", 20n],
    ] as const)
      await guard.show(name, token);
    await guard.show("a", 11n);
    await guard.show("d", 50n);
    expect(guard.size).toBe(3);
    expect(await guard.highest("b")).toBe(null);
    expect(await guard.highest("a")).toBe(11n);
    await expect(guard.write("b", 39n, () => "late")).rejects.toMatchObject({
      code: "LOCK_STALE_TOKEN",
      message: expect.stringMatching(/not among the 3 resources .* may be stale/),
    });
    expect(await guard.write("b", 41n, () => "in time")).toBe("in time");
  });

  it("does not forget what is being written", async () => {
    const guard = memoryGuard({ capacity: 1 });
    const old = slow(guard, 33n);
    await guard.show("other row", 50n);
    await guard.show("third row", 51n);
    const fresh = slow(guard, 34n);
    expect(old.signal()?.aborted).toBe(true);
    expect(fresh.begun()).toBe(false);
    old.end();
    fresh.end();
    await fresh.done;
  });

  it("stays within its capacity over many resources", async () => {
    const guard = memoryGuard({ capacity: 100 });
    for (let i = 0; i < 10_000; i++) await guard.show(`row ${i}`, BigInt(i));
    expect(guard.size).toBe(100);
    expect(() => memoryGuard({ capacity: 0 })).toThrow(TypeError);
  });
});

describe("tokens that are kept elsewhere", () => {
  it("are shown there first: what it refuses is not begun", async () => {
    const keep = memoryGuard();
    const guard = memoryGuard({ keep, capacity: 1 });
    await keep.show("row", 34n);
    let begun = false;
    const late = guard.write("row", 33n, () => {
      begun = true;
    });
    await expect(late).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    expect(begun).toBe(false);
    expect(await guard.highest("row")).toBe(34n);
    await guard.show("other row", 50n);
    expect(await guard.write("row", 34n, () => "known there")).toBe("known there");
    expect(await keep.highest("other row")).toBe(50n);
  });

  it("a newer token that arrives meanwhile refuses the older one", async () => {
    let answer: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const keep = { show: () => asked, highest: async () => null };
    const guard = memoryGuard({ keep });
    const old = slow(guard, 33n);
    const fresh = slow(guard, 34n);
    answer();
    fresh.end();
    await expect(old.done).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    expect(old.begun()).toBe(false);
    expect(await fresh.done).toBe("written by 34");
  });
});
