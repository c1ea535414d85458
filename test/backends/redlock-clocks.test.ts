/**
 * The Redlock backend on servers whose clocks jump or that lose their data: two hold at once if and only if the nodes that a
 * holder did not have and those that have forgotten it are a majority; and with tokens no stale write is accepted then.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redlockBackend } from "../../src/backends/redlock/index.ts";
import type { RedlockSettings } from "../../src/backends/redlock/index.ts";
import { quorumOf } from "../../src/backends/redlock/quorum.ts";
import { LockManager } from "../../src/core/manager.ts";
import type { ClockShim } from "../../src/verify/servers/clock-shim.ts";
import { makeClocks } from "../helpers/clocks.ts";
import { startServers, type Servers } from "../helpers/redlock.ts";

const nodes = 5;
const jumpMs = 60_000;
let clocks: readonly ClockShim[] = [];
let fleet: Servers;
let [first, second]: LockManager[] = [];
const opened: LockManager[] = [];

function manager(settings: RedlockSettings): LockManager {
  const locks = new LockManager(redlockBackend({ url: fleet.url, deadlineMs: 2_000, ...settings }));
  opened.push(locks);
  return locks;
}

beforeAll(async () => {
  clocks = await makeClocks(nodes);
});

afterAll(() => Promise.all(clocks.map((clock) => clock.remove())));

/** Servers of its own for a group: what jumping clocks leave in the counters is no part of the next. */
function withServers(): void {
  beforeAll(async () => {
    fleet = await startServers(nodes, { env: (index) => ({ ...process.env, ...clocks[index]?.env }) });
    first = manager({ quarantineMs: 0 });
    second = manager({ quarantineMs: 0 });
  });

  afterAll(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()));
    await fleet.close();
  });
}

/** A resource that remembers the largest token, and one that does not. */
class Resource {
  #highest = 0n;
  readonly fenced: string[] = [];
  readonly unfenced: string[] = [];

  write(token: bigint, what: string): void {
    this.unfenced.push(what);
    if (token < this.#highest) return;
    this.#highest = token;
    this.fenced.push(what);
  }
}

/** On how many nodes a lock is, once it is on so many, or three seconds later: a majority is enough for a grant, the others take it a little later. */
async function countOf(name: string, expected: number): Promise<number> {
  const count = async (): Promise<number> => {
    const found = await Promise.all(fleet.lookers.map((looker) => looker.exists(name)));
    return found.filter(Boolean).length;
  };
  for (const end = performance.now() + 3_000; (await count()) !== expected && performance.now() < end;)
    await sleep(5);
  return count();
}

/** Waits until a client reaches all nodes: one that is just connecting would take a lock that was refused by then. */
async function reachAll(locks: LockManager, name: string): Promise<void> {
  for (let isEverywhere = false; !isEverywhere;) {
    const lock = await locks.acquire(name, { ttl: "30s", renew: false, wait: "10s" });
    isEverywhere = (await countOf(name, nodes)) === nodes;
    await lock.release();
  }
}

/** Lets the first client hold a lock on exactly so many nodes: on the others somebody else has it for a moment. */
async function holdOn(name: string, held: number) {
  if (first === undefined) throw new Error("there is no client");
  await reachAll(first, `${name}-before`);
  const others = fleet.lookers.slice(held);
  for (const looker of others) await looker.set(name, "somebody", "PX", 60_000, "NX");
  const lock = await first.acquire(name, { ttl: "30s", renew: false, wait: "10s" });
  // A majority has answered: those who are slower have refused it by the time they have taken another.
  await reachAll(first, `${name}-after`);
  for (const looker of others) await looker.del(name);
  expect(await countOf(name, held)).toBe(held);
  return lock;
}

/** The second client tries while the first believes; both write, the first one last. */
async function compete(
  name: string,
  held: number,
  forget: (node: number) => Promise<void>,
  forgetting: number,
) {
  if (second === undefined) throw new Error("there is no client");
  const lock = await holdOn(name, held);
  for (let node = 0; node < forgetting; node++) await forget(node);
  const rival = await second.tryAcquire(name, { ttl: "30s" });
  expect(lock.held, "the first believes all the while").toBe(true);
  const resource = new Resource();
  if (rival !== null) resource.write(rival.token, "second");
  resource.write(lock.token, "first");
  await rival?.release();
  await lock.release().catch(() => {});
  return { twice: rival !== null, resource };
}

const cells = [3, 4, 5].flatMap((held) =>
  Array.from({ length: held + 1 }, (_, forgotten) => ({ held, forgotten })),
);

function law({ held, forgotten }: { held: number; forgotten: number }): boolean {
  return nodes - held + forgotten >= quorumOf(nodes);
}

function judge(
  cell: { held: number; forgotten: number },
  { twice, resource }: { twice: boolean; resource: Resource },
) {
  expect(twice).toBe(law(cell));
  // The first one's write is stale once the second one's was seen: the token tells, and nothing else.
  expect(resource.unfenced).toEqual(twice ? ["second", "first"] : ["first"]);
  expect(resource.fenced).toEqual(twice ? ["second"] : ["first"]);
}

it("the law has both answers in the table", () => {
  expect(new Set(cells.map(law)).size).toBe(2);
});

describe("clocks that jump", () => {
  withServers();

  it.each(cells)("held on $held of 5, $forgotten of them jump: the law, and no stale write", async (cell) => {
    const { held, forgotten } = cell;
    try {
      const jump = async (node: number): Promise<void> => clocks[node]?.set(jumpMs);
      judge(cell, await compete(`jump-${held}-${forgotten}`, held, jump, forgotten));
    } finally {
      await Promise.all(clocks.map((clock) => clock.set(0)));
    }
  });

  it.each(cells)(
    "held on $held of 5, $forgotten of them evict it: the law, and no stale write",
    async (cell) => {
      const { held, forgotten } = cell;
      const name = `forget-${held}-${forgotten}`;
      const forget = async (node: number): Promise<void> => {
        await fleet.lookers[node]?.del(name);
      };
      judge(cell, await compete(name, held, forget, forgotten));
    },
  );
});

describe("nodes that are restarted without their data", () => {
  withServers();

  async function restart(node: number): Promise<void> {
    await fleet.servers[node]?.server.kill();
    await fleet.servers[node]?.server.start();
  }

  it.each([
    { held: 3, forgotten: 1 },
    { held: 5, forgotten: 2 },
    { held: 5, forgotten: 3 },
  ])("without quarantine, held on $held of 5 and $forgotten restarted: the same law", async (cell) => {
    judge(cell, await compete(`restart-${cell.held}-${cell.forgotten}`, cell.held, restart, cell.forgotten));
  });

  it("with quarantine nobody else is granted while the first believes, and later somebody is", async () => {
    const settings = { quarantineMs: 4_000 };
    const [a, b] = [manager(settings), manager(settings)];
    const lock = await retried(() => a.acquire("q", { ttl: "4s", renew: false }));
    await retried(() => b.tryAcquire("other", { ttl: "1s" }));
    await Promise.all([0, 1, 2].map(restart));
    let tries = 0;
    while (lock.held) {
      const rival = await b.tryAcquire("q", { ttl: "1s" }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
        return null;
      });
      expect(rival === null || !lock.held).toBe(true);
      tries += 1;
      await sleep(20);
    }
    expect(tries).toBeGreaterThan(3);
    const next = await retried(() => b.acquire("q", { ttl: "1s", wait: "5s" }));
    expect(next.token).toBeGreaterThan(lock.token);
  });
});

/** Tries until the nodes have been up for long enough. */
async function retried<T>(ask: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + 15_000; ; await sleep(100)) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
  }
}
