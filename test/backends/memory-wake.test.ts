/** The memory store wakes its watchers in the middle of a call: what they ask at once must find the queues in order. */
import { describe, expect, it } from "vitest";
import type { NewEntry, Snapshot } from "../../src/core/backend.ts";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { ManualClock } from "../../src/testing/index.ts";

const owner = { client: "c", host: "h", pid: 1 };

function entry(id: string, ttlMs: number): NewEntry {
  return { id, owner, mode: "write", weight: 1, ttlMs };
}

describe("a waiter that asks again from inside a wake-up", () => {
  it("meets in one queue with the append that woke it", async () => {
    const clock = new ManualClock();
    const backend = memoryBackend({ clock });
    const holder = backend.append("q", entry("holder", 100));
    const waiting = backend.append("q", entry("waiter", 50));
    if (holder === null || waiting === null) throw new Error("refused");
    let again: Snapshot | null = null;
    backend.watch("q", waiting.self, holder.self, () => {
      again = backend.append("q", entry("waiter", 1_000));
    });
    await clock.advance(60);
    expect(await backend.list("q")).toHaveLength(1);
    await clock.advance(60);
    const newcomer = backend.append("q", entry("newcomer", 1_000));
    expect(again).not.toBeNull();
    expect((await backend.list("q")).map(({ id }) => id)).toEqual(["waiter", "newcomer"]);
    expect(newcomer?.ahead.nearest?.id).toBe("waiter");
  });

  it("gets a seq of its own", async () => {
    const clock = new ManualClock();
    const backend = memoryBackend({ clock });
    backend.append("q", entry("holder", 1_000));
    const second = backend.append("q", entry("second", 100));
    const third = backend.append("q", entry("third", 50));
    if (second === null || third === null) throw new Error("refused");
    backend.watch("q", third.self, second.self, () => {
      backend.append("q", entry("third", 1_000));
    });
    await clock.advance(60);
    await backend.list("q");
    await clock.advance(60);
    backend.append("q", entry("newcomer", 1_000));
    const seqs = (await backend.list("q")).map(({ seq }) => seq);
    expect(seqs).toHaveLength(3);
    expect(new Set(seqs).size).toBe(3);
    expect(seqs).toEqual(seqs.toSorted((a, b) => (a < b ? -1 : 1)));
  });
});
