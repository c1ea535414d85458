/** The messages on diagnostics_channel: one for each step, none built when nobody listens. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, describe, expect, it } from "vitest";
import { channels } from "../../src/core/channels.ts";
import type { RequestOptions } from "../../src/core/options.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { deferred, hanging, rejection, track } from "../helpers/promises.ts";
import { rig } from "../helpers/rig.ts";

const names = ["request", "grant", "renew", "lost", "release", "cancel", "steal"] as const;
const endings: (() => void)[] = [];

/** All messages from now on, each with its channel. */
function record(): { channel: string; message: unknown }[] {
  const seen: { channel: string; message: unknown }[] = [];
  for (const channel of names) {
    const listener = (message: unknown): void => {
      seen.push({ channel, message });
    };
    subscribe(`holdfast:${channel}`, listener);
    endings.push(() => unsubscribe(`holdfast:${channel}`, listener));
  }
  return seen;
}

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

const common = { name: "a", mode: "exclusive", backend: "memory", clientId: "me" };

describe("diagnostics", () => {
  it("tell of a request, its grant and its release", async () => {
    const { locks, clock } = rig({ clientId: "me" });
    const seen = record();
    const lock = await locks.acquire("a");
    clock.block(250);
    await lock.release();
    const id = "me.1";
    expect(seen).toEqual([
      { channel: "request", message: { ...common, id } },
      { channel: "grant", message: { ...common, id, token: lock.token, waitedMs: 0 } },
      {
        channel: "release",
        message: { ...common, id, token: lock.token, outcome: "released", heldMs: 250 },
      },
    ]);
  });

  it("tell how long a grant was waited for", async () => {
    const { locks, clock, other } = rig({ clientId: "me" });
    const holder = await other().locks.acquire("a");
    const seen = record();
    track(locks.acquire("a", { mode: "shared" }));
    await clock.advance(1_500);
    await holder.release();
    await settle();
    const grant = seen.find(({ channel }) => channel === "grant");
    expect(grant?.message).toMatchObject({ name: "a", mode: "shared", clientId: "me", waitedMs: 1_500 });
  });

  it("tell of each renewal and its outcome", async () => {
    const { locks, clock, backend } = rig({ clientId: "me" });
    await locks.acquire("a", { ttl: "12s" });
    const seen = record();
    await clock.advance(4_000);
    const cause = new Error("reset");
    backend.hooks.renew = () => Promise.reject(cause);
    await clock.advance(4_000);
    expect(seen[0]).toMatchObject({ channel: "renew", message: { ...common, outcome: "renewed" } });
    expect(seen[1]).toMatchObject({ channel: "renew", message: { ...common, outcome: "unknown", cause } });
  });

  it.each([
    ["expired", "expired"],
    ["gone", "gone"],
    ["evicted", "evicted"],
    ["max-hold", "max-hold"],
    ["closed", "closed"],
  ])("tell why a lock was lost: %s", async (_how, why) => {
    const { locks, clock, backend, other, entries, erase } = rig({ clientId: "me" });
    const lock = await locks.acquire("a", {
      ttl: "10s",
      ...(why === "max-hold" ? { maxHold: "1s" } : {}),
    });
    const seen = record();
    if (why === "expired") backend.hooks.renew = () => hanging();
    if (why === "gone") erase("a", (await entries("a"))[0]?.id ?? "");
    if (why === "evicted") await other().locks.acquire("a", { steal: true });
    if (why === "closed") await locks.close();
    await clock.advance(10_000);
    const lost = seen.filter(({ channel }) => channel === "lost");
    expect(lost).toHaveLength(1);
    expect(lost[0]?.message).toMatchObject({ ...common, token: lock.token, why });
  });

  it.each<[string, RequestOptions, number]>([
    ["BUSY", { ifAvailable: true }, 0],
    ["LOCK_TIMEOUT", { wait: 100 }, 100],
    ["LOCK_ABORTED", {}, 50],
  ])("tell of a request that ended without a grant: %s", async (code, options, waitedMs) => {
    const { locks, clock, other } = rig({ clientId: "me" });
    await other().locks.acquire("a");
    const seen = record();
    const controller = new AbortController();
    const { signal } = controller;
    track(locks.request("a", code === "LOCK_ABORTED" ? { signal } : options, () => {}));
    await clock.advance(50);
    controller.abort();
    await clock.advance(50);
    expect(seen.at(-1)).toEqual({ channel: "cancel", message: { ...common, id: "me.1", code, waitedMs } });
  });

  it("tell of a theft and whom it evicted", async () => {
    const { locks, other } = rig({ clientId: "me" });
    const holder = await other({ clientId: "victim" }).locks.acquire("a");
    const seen = record();
    await locks.acquire("a", { steal: true });
    const theft = seen.find(({ channel }) => channel === "steal");
    expect(theft?.message).toEqual({
      ...common,
      id: "me.1",
      evicted: [{ id: "victim.1", token: holder.token }],
    });
  });

  it("tell that the outcome of a release is unknown", async () => {
    const { locks, backend } = rig({ clientId: "me" });
    const lock = await locks.acquire("a");
    backend.hooks.remove = () => Promise.reject(new Error("reset"));
    const seen = record();
    await rejection(lock.release());
    expect(seen).toMatchObject([{ channel: "release", message: { ...common, outcome: "unknown" } }]);
  });

  it("tell of a release after a loss, once each, and of no loss after a release", async () => {
    const { locks, clock } = rig({ clientId: "me" });
    const lost = await locks.acquire("a", { ttl: "10s" });
    const kept = await locks.acquire("b", { ttl: "10s" });
    const seen = record();
    await kept.release();
    clock.block(10_000);
    await lost.release();
    await clock.advance(20_000);
    expect(seen.map(({ channel }) => channel)).toEqual(["release", "lost", "release"]);
  });

  it("bear a listener's own error: the request goes on", async () => {
    const { locks } = rig();
    const thrown: unknown[] = [];
    const onError = (error: unknown): void => {
      thrown.push(error);
    };
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", onError);
    subscribe("holdfast:grant", failing);
    endings.push(() => unsubscribe("holdfast:grant", failing));
    expect(await locks.request("a", () => 7)).toBe(7);
    await settle();
    process.off("uncaughtException", onError);
    for (const other of others) process.on("uncaughtException", other);
    expect(thrown).toEqual([new Error("a listener's own")]);
  });

  it("build no message when nobody listens", async () => {
    expect(names.map((name) => channels[name].hasSubscribers)).toEqual(names.map(() => false));
    const { locks, backend, clock } = rig();
    await locks.acquire("a");
    await clock.advance(60_000);
    const gate = deferred();
    const section = locks.request("b", () => gate.promise);
    gate.resolve();
    await section;
    // A message reads the backend's name.
    expect(backend.nameReads).toBe(0);
  });
});

function failing(): void {
  throw new Error("a listener's own");
}
