/** What a steal does to those who only wait: they are displaced, not granted for a moment and robbed. */
import { EventEmitter, once } from "node:events";
import { expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { LockManager } from "../../src/core/manager.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";

it("those who wait for a writer join again in their order, readers and writers alike", async () => {
  const clock = new ManualClock();
  await using locks = new LockManager(memoryBackend({ clock }), { clock });
  const entered: number[] = [];
  const robbed = expect(locks.request("job", () => new Promise(() => {}))).rejects.toMatchObject({
    name: "AbortError",
  });
  const modes = ["exclusive", "shared", "exclusive", "shared", "shared"] as const;
  const waits = modes.map((mode, place) =>
    locks.request("job", { mode }, async () => {
      entered.push(place);
      await settle();
    }),
  );
  await locks.request("job", { steal: true }, settle);
  await robbed;
  await Promise.all(waits);
  expect(entered).toEqual([0, 1, 2, 3, 4]);
});

it("a waiter is not granted while a thief takes the lock, and gets it after the thief", async () => {
  const clock = new ManualClock();
  const open = (): LockManager =>
    new LockManager(memoryBackend({ store: "steal-displaces", clock }), { clock });
  const [holder, waiter, thief] = [open(), open(), open()];
  const entered: string[] = [];

  const robbed = holder.request("job", () => new Promise(() => {}));
  const waited = waiter.request("job", (lock) => {
    entered.push("waiter");
    return lock.token;
  });
  const door = new EventEmitter();
  const stolen = thief.request("job", { steal: true }, async (lock) => {
    entered.push("thief");
    await once(door, "leave");
    return lock.token;
  });
  await expect(robbed).rejects.toMatchObject({ name: "AbortError" });
  await settle();
  expect(entered).toEqual(["thief"]);

  door.emit("leave");
  expect(await waited).toBeGreaterThan(await stolen);
  expect(entered).toEqual(["thief", "waiter"]);
  await Promise.all([holder, waiter, thief].map((locks) => locks.close()));
});
