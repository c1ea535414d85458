/** The Redis backend when its server's clock steps: what still holds, what does not, and that it is seen; with a clock that is preloaded. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ask, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend, type RedisBackend } from "../../src/backends/redis/index.ts";
import { LockManager } from "../../src/core/manager.ts";
import type { ClockShim } from "../../src/verify/servers/clock-shim.ts";
import { makeClocks } from "../helpers/clocks.ts";

const hourMs = 3_600_000;
let clock: ClockShim | undefined;
let redis: Awaited<ReturnType<typeof startRedis>>;
let backend: RedisBackend;
let managers: readonly [LockManager, LockManager];
const warnings: string[] = [];
const keep = (warning: Error): void => void warnings.push(`${warning.name} ${warning.message}`);

beforeAll(async () => {
  [clock] = await makeClocks(1);
  process.on("warning", keep);
});
afterAll(async () => {
  process.off("warning", keep);
  await clock?.remove();
});

beforeEach(async () => {
  await clock?.set(0);
  redis = await startRedis({ env: { ...process.env, ...clock?.env } });
  const open = (): RedisBackend =>
    redisBackend({ url: `redis://127.0.0.1:${redis.port}`, deadlineMs: 2_000 });
  backend = open();
  managers = [new LockManager(backend, { ttl: "3s" }), new LockManager(open(), { ttl: "3s" })];
  await Promise.all(managers.map((locks) => locks.request("warm", () => {})));
  warnings.length = 0;
});
afterEach(async () => {
  await Promise.all(managers.map((locks) => locks.close()));
  await redis.server.remove();
});

async function clockFinding(): Promise<string> {
  const finding = (await backend.examine()).find(({ about }) => about === "clock");
  return `${finding?.level}: ${finding?.seen}`;
}

describe("a step forward", () => {
  it("ends locks early, as the docs say: another may hold, with a higher token, until the first hears of it", async () => {
    const [a, b] = managers;
    const first = await a.acquire("a");
    await clock?.set(hourMs);
    const second = await b.tryAcquire("a");
    expect([first.held, second?.held]).toEqual([true, true]);
    expect(second?.token).toBeGreaterThan(first.token);
    for (const end = performance.now() + 5_000; !first.signal.aborted && performance.now() < end;)
      await sleep(20);
    expect([first.held, second?.held]).toEqual([false, true]);
    expect(await first.release()).toBe("gone");
  });

  it("is seen, told and shown, and nothing is refused for it", async () => {
    expect(await clockFinding()).toBe("ok: no step seen");
    await clock?.set(hourMs);
    for (const locks of managers) await (await locks.acquire("b")).release();
    expect(await clockFinding()).toBe("warning: stepped once");
    expect(warnings).toEqual([
      expect.stringMatching(
        /^HoldfastWarning redis: clock: .* stepped forward by (3600|3599\.\d) s against ours\. let/,
      ),
      expect.stringMatching(/stepped forward/),
    ]);
    expect(await ask(redis.port, "dbsize")).toBe("0");
  });
});

describe("a step back", () => {
  it("takes no token back while a lock is in use, and ends no lock", async () => {
    const [a, b] = managers;
    const first = await a.acquire("a");
    const waiting = b.acquire("a");
    while ((await a.query()).pending.length < 1) await sleep(10);
    await clock?.set(-hourMs);
    await sleep(1_500);
    expect(first.held).toBe(true);
    expect(await first.release()).toBe("released");
    const second = await waiting;
    expect(second.token).toBeGreaterThan(first.token);
    const third = a.acquire("a");
    while ((await a.query()).pending.length < 1) await sleep(10);
    await second.release();
    expect((await third).token).toBeGreaterThan(second.token);
    await (await third).release();
    // The limit that the docs name: a lock that was idle remembers nothing.
    expect((await a.acquire("a")).token).toBeLessThan(first.token);
  });

  it("is seen, told and shown", async () => {
    await clock?.set(-hourMs);
    await managers[0].request("b", () => {});
    expect(await clockFinding()).toBe("warning: stepped once");
    expect(warnings).toEqual([expect.stringMatching(/stepped back by (3600|3599\.\d) s/)]);
  });
});
