/** An entry that expired and was appended again is another entry: a renewal of the one says nothing about the other. */
import { expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import type { NewEntry } from "../../src/core/backend.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

const entry: NewEntry = {
  id: "c.1",
  owner: { client: "c", host: "h", pid: 1 },
  mode: "write",
  weight: 1,
  ttlMs: 100,
};

it("a renewal of an earlier entry with the same id is answered gone", async () => {
  const clock = new ManualClock();
  const backend = memoryBackend({ clock });
  const before = backend.append("a", entry)?.self.seq ?? 0n;
  await clock.advance(150);
  const after = backend.append("a", entry)?.self.seq ?? 0n;
  const renewals = [before, after].map((seq) => ({ queue: "a", id: entry.id, seq, ttlMs: 100 }));
  const [first, second] = await backend.renew(renewals);
  expect(first).toMatchObject({ outcome: "gone" });
  expect(second).toMatchObject({ outcome: "renewed" });
});

it("an eviction of an earlier entry with the same id takes out nothing", async () => {
  const clock = new ManualClock();
  const backend = memoryBackend({ clock });
  const before = backend.append("a", entry)?.self.seq ?? 0n;
  expect(backend.remove("a", entry.id, true, before)).toBe(true);
  const after = backend.append("a", entry)?.self.seq ?? 0n;
  expect(backend.remove("a", entry.id, true, before)).toBe(false);
  expect(backend.remove("a", entry.id, true, after)).toBe(true);
});
