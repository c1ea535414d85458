/** Locks that are renewed together: what becomes of one of them becomes of that one alone. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it } from "vitest";
import type { Renewed } from "../../src/core/backend.ts";
import type { Lock } from "../../src/core/lock.ts";
import { deferred, hanging } from "../helpers/promises.ts";
import { type Rig, rig } from "../helpers/rig.ts";

const ttl = "12s";

/** So many locks of one client that have been renewed together once. */
async function inCompany(count = 3): Promise<Rig & { readonly held: readonly Lock[] }> {
  const one = rig();
  const names = Array.from({ length: count }, (_, index) => `a${index}`);
  const held = await Promise.all(names.map((name) => one.locks.acquire(name, { ttl })));
  await one.clock.advance(4_000);
  expect(one.backend.count("renew")).toBe(Math.ceil(count / 500));
  return { ...one, held };
}

/** The numbers of entries that were renewed, call by call. */
const sizes = ({ backend }: Rig): number[] =>
  backend.calls.filter(({ method }) => method === "renew").map(({ size }) => size);

const stillHeld = (locks: readonly Lock[]): boolean[] => locks.map((lock) => lock.held);

describe("locks that are renewed together", () => {
  it("are kept far beyond their ttl, in one call each time", async () => {
    const one = await inCompany();
    await one.clock.advance(3_600_000);
    expect(stillHeld(one.held)).toEqual([true, true, true]);
    expect(new Set(sizes(one))).toEqual(new Set([3]));
    for (const lock of one.held) expect((await one.entries(lock.name))[0]?.seq).toBe(lock.token);
  });

  it("are asked for with the same list each time", async () => {
    const { backend, clock } = await inCompany();
    const asked = new Set<unknown>();
    backend.hooks.renew = (send, renewals) => {
      asked.add(renewals);
      return send();
    };
    await clock.advance(20_000);
    expect(backend.count("renew")).toBeGreaterThan(4);
    expect(asked.size).toBe(1);
  });

  it("one that is released is not renewed any more, and the others are", async () => {
    const one = await inCompany();
    expect(await one.held[1]?.release()).toBe("released");
    await one.clock.advance(60_000);
    expect(stillHeld(one.held)).toEqual([true, false, true]);
    expect(await one.entries("a1")).toEqual([]);
    expect(
      sizes(one)
        .slice(1)
        .every((size) => size === 2),
    ).toBe(true);
  });

  it("nothing is left once all of them are released", async () => {
    const { locks, clock, backend } = rig();
    const take = (): Promise<Lock[]> => Promise.all(["a", "b"].map((name) => locks.acquire(name, { ttl })));
    for (const lock of await take()) await lock.release();
    const before = clock.timers;
    const held = await take();
    await clock.advance(9_000);
    for (const lock of held) await lock.release();
    expect(clock.timers).toBe(before);
    const asked = backend.count("renew");
    await clock.advance(60_000);
    expect([clock.timers, backend.count("renew")]).toEqual([0, asked]);
  });

  it("one that was released while it was renewed is not brought back", async () => {
    const one = await inCompany();
    const { backend, clock, held } = one;
    const answer = deferred<readonly Renewed[]>();
    backend.hooks.renew = () => answer.promise;
    await clock.advance(4_000);
    backend.hooks = {};
    await held[1]?.release();
    answer.resolve(held.map(() => ({ outcome: "renewed", expiresInMs: 12_000 })));
    await clock.advance(20_000);
    expect(stillHeld(held)).toEqual([true, false, true]);
    expect(await one.entries("a1")).toEqual([]);
  });

  it("nothing is left of those that were all released while they were renewed", async () => {
    const { backend, clock, held } = await inCompany();
    const answer = deferred<readonly Renewed[]>();
    backend.hooks.renew = () => answer.promise;
    await clock.advance(4_000);
    backend.hooks = {};
    for (const lock of held) await lock.release();
    answer.resolve(held.map(() => ({ outcome: "renewed", expiresInMs: 12_000 })));
    const asked = backend.count("renew");
    await clock.advance(60_000);
    expect([clock.timers, backend.count("renew")]).toEqual([0, asked]);
  });

  it("one that a listener of a loss releases just then is not renewed any more", async () => {
    const one = await inCompany(500);
    const { locks, backend, clock, held } = one;
    const other = await locks.acquire("other", { ttl, maxHold: 3_500 });
    other.signal.addEventListener("abort", () => void held[7]?.release());
    await clock.advance(3_499);
    const asked = new Set<string>();
    backend.hooks.renew = (send, renewals) => {
      for (const { queue } of renewals) asked.add(queue);
      return send();
    };
    await clock.advance(1);
    expect([other.held, held[7]?.held, asked.size, asked.has("a7")]).toEqual([false, false, 499, false]);
  });

  it("one that is gone is lost, and the others are not", async () => {
    const one = await inCompany();
    const [entry] = await one.entries("a2");
    one.erase("a2", entry?.id ?? "");
    await one.clock.advance(4_000);
    expect(one.held[2]?.signal.aborted).toBe(true);
    expect(stillHeld(one.held)).toEqual([true, true, false]);
    await one.clock.advance(60_000);
    expect(stillHeld(one.held)).toEqual([true, true, false]);
  });

  it("one that is evicted is told at once, and the others go on", async () => {
    const one = await inCompany();
    await one.other().locks.request("a0", { steal: true }, () => {});
    await one.clock.advance(1);
    expect(one.held[0]?.signal.aborted).toBe(true);
    await one.clock.advance(60_000);
    expect(stillHeld(one.held)).toEqual([false, true, true]);
  });

  it("one whose outcome is unknown is asked for again, soon and alone", async () => {
    const one = await inCompany();
    const { backend, clock, held } = one;
    backend.hooks.renew = async (send) => {
      backend.hooks = {};
      const [, ...rest] = await send();
      return [{ outcome: "unknown" }, ...rest];
    };
    await clock.advance(4_000);
    const before = backend.count("renew");
    await clock.advance(1_500);
    expect(sizes(one).slice(before)).toEqual([1]);
    await clock.advance(60_000);
    expect(stillHeld(held)).toEqual([true, true, true]);
    // It has moments of its own from then on.
    expect(sizes(one).slice(-6)).toEqual([2, 1, 2, 1, 2, 1]);
    for (const lock of held) await lock.release();
    const asked = backend.count("renew");
    await clock.advance(60_000);
    expect([clock.timers, backend.count("renew")]).toEqual([0, asked]);
  });

  it("an answer that is too short is unknown for those that it leaves out", async () => {
    const { backend, clock, held } = await inCompany();
    backend.hooks.renew = async (send, renewals) =>
      (await send()).filter((_, index) => renewals[index]?.queue === "a0");
    await clock.advance(12_000);
    expect(stillHeld(held)).toEqual([true, false, false]);
  });

  it("all are lost when the store does not answer, before their entries expire", async () => {
    const { backend, clock, held } = await inCompany();
    const lostAt: number[] = [];
    for (const lock of held) lock.signal.addEventListener("abort", () => lostAt.push(clock.now()));
    const renewedBy = clock.now();
    backend.hooks.renew = () => hanging();
    await clock.advance(20_000);
    expect(lostAt).toHaveLength(3);
    for (const moment of lostAt) expect(moment - renewedBy).toBeLessThan(12_000);
    expect(stillHeld(held)).toEqual([false, false, false]);
  });

  it("an answer that comes after they were lost brings none of them back", async () => {
    const { backend, clock, held } = await inCompany();
    const late = deferred<readonly Renewed[]>();
    backend.hooks.renew = () => late.promise;
    await clock.advance(13_000);
    backend.hooks = {};
    late.resolve(held.map(() => ({ outcome: "renewed", expiresInMs: 12_000 })));
    await clock.advance(1);
    expect(stillHeld(held)).toEqual([false, false, false]);
  });

  it("a listener of one loss may release another", async () => {
    const { backend, clock, held } = await inCompany();
    held[0]?.signal.addEventListener("abort", () => void held[1]?.release());
    backend.hooks.renew = () => hanging();
    await clock.advance(13_000);
    expect(stillHeld(held)).toEqual([false, false, false]);
    expect(held[2]?.signal.aborted).toBe(true);
  });

  it("all are given back when the manager is closed", async () => {
    const one = await inCompany();
    await one.locks.close();
    expect(stillHeld(one.held)).toEqual([false, false, false]);
    for (const name of ["a0", "a1", "a2"]) expect(await one.entries(name)).toEqual([]);
  });

  it("whoever listens to renewals hears of each", async () => {
    const { clock } = await inCompany();
    const heard: unknown[] = [];
    const listen = (message: unknown): void => void heard.push(message);
    subscribe("holdfast:renew", listen);
    try {
      await clock.advance(8_000);
    } finally {
      unsubscribe("holdfast:renew", listen);
    }
    expect(heard).toHaveLength(6);
  });

  it("one that may be held for a while only has its own end", async () => {
    const { locks, clock } = rig();
    const [short, long] = await Promise.all([
      locks.acquire("short", { ttl, maxHold: "15s" }),
      locks.acquire("long", { ttl }),
    ]);
    await clock.advance(14_000);
    expect(stillHeld([short, long])).toEqual([true, true]);
    await clock.advance(2_000);
    expect(stillHeld([short, long])).toEqual([false, true]);
  });

  it("those that come later join them in one call", async () => {
    const one = await inCompany();
    await one.locks.acquire("b", { ttl });
    await one.clock.advance(16_000);
    expect(sizes(one).slice(-2)).toEqual([4, 4]);
  });

  it("full calls stay as they are, whoever comes and goes elsewhere", async () => {
    const one = await inCompany(1_003);
    await one.held[1_001]?.release();
    await one.clock.advance(4_000);
    expect(sizes(one)).toEqual([500, 500, 3, 500, 500, 2]);
    await one.held[0]?.release();
    await one.clock.advance(8_000);
    expect(sizes(one).slice(-3)).toEqual([500, 500, 1]);
    expect(stillHeld(one.held).filter(Boolean)).toHaveLength(1_001);
  });
});
