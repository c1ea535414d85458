/** What becomes of a request when the store answers one of its calls late, or never. */
import { describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import type { Backend, Snapshot } from "../../src/core/backend.ts";
import { LockManager } from "../../src/core/manager.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";

/** A store in memory whose first append is executed at once, but answered only when told. */
function slowFirstAppend(clock: ManualClock): { backend: Backend; answer: () => void } {
  const inner = memoryBackend({ clock });
  let appends = 0;
  let held: ((snapshot: Snapshot | null) => void) | null = null;
  let kept: Snapshot | null = null;
  const backend: Backend = {
    name: inner.name,
    traits: { ...inner.traits, callOrder: false },
    append(queue, entry) {
      const snapshot = inner.append(queue, entry);
      appends += 1;
      if (appends > 1) return Promise.resolve(snapshot);
      return new Promise<Snapshot | null>((resolve) => {
        held = resolve;
        kept = snapshot;
      });
    },
    renew: (renewals) => inner.renew(renewals),
    remove: (queue, id, evict) => inner.remove(queue, id, evict),
    list: (queue) => inner.list(queue),
    watch: (queue, self, target, onChange) => inner.watch(queue, self, target, onChange),
    close: () => inner.close(),
  };
  return {
    backend: Object.assign(backend, { queues: (prefix: string) => inner.queues(prefix) }),
    answer: () => held?.(kept),
  };
}

describe("a store that does not answer", () => {
  it("may answer an earlier question while the lock is held: the lock stays", async () => {
    const clock = new ManualClock();
    const { backend, answer } = slowFirstAppend(clock);
    const locks = new LockManager(backend, { clock, random: () => 0.5 });
    const asked = locks.acquire("a", { ttl: 1000 });
    await clock.advance(1200);
    const lock = await asked;
    answer();
    await settle();
    expect(lock.held).toBe(true);
    expect(await backend.list("a")).toHaveLength(1);
  });

  it("holds up later requests of the same name for no longer than a ttl", async () => {
    const clock = new ManualClock();
    const { backend } = slowFirstAppend(clock);
    const locks = new LockManager(backend, { clock, random: () => 0.5 });
    const first = locks.request("a", { ttl: 1000, wait: 100 }, () => {});
    const second = locks.acquire("a", { ttl: 5000 });
    const query = locks.query();
    first.catch(() => {});
    await clock.advance(2500);
    await expect(first).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect((await second).held).toBe(true);
    expect((await query).held).toHaveLength(1);
  });
});
