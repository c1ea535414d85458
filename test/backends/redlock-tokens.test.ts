/** Tokens of the Redlock backend: all orders of all steps of two clients on three nodes, in a model that the script is compared with. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startRedis, type Started } from "../../scripts/lib/redis-servers.mjs";
import { redlockBackend } from "../../src/backends/redlock/index.ts";
import { counterKey } from "../../src/backends/redlock/keys.ts";
import { callsScript } from "../../src/backends/redlock/scripts.ts";
import { LockManager } from "../../src/core/manager.ts";
import { below, pick, seeded } from "../../src/testing/random.ts";
import {
  type Happening,
  letGo,
  type Mistake,
  type ModelNode,
  playAll,
  store,
  take,
} from "../helpers/redlock-model.ts";

/** What the two clients propose; 0 is nothing, and clocks begin at 1. */
type Proposals = readonly [number, number];

const none: Proposals = [0, 0];
const same: Proposals = [2, 2];

function pairsOf(numbers: readonly number[]): readonly Proposals[] {
  return numbers.flatMap((first) => numbers.map((second): Proposals => [first, second]));
}

describe("tokens of complete grants are unique, and grow from one that was complete to one that began later", () => {
  const worlds: readonly (readonly [number, readonly Happening[], readonly Proposals[]])[] = [
    [1, ["expiry", "restart", "clock forward", "clock back"], pairsOf([0, 2, 3])],
    [2, ["expiry", "restart"], [none, same]],
    [2, ["expiry", "clock back"], [none, same, [3, 2]]],
  ];

  it.each(worlds)(
    "with %i of %j at any moment and the proposals %j, in every order of steps",
    (events, kinds, proposals) => {
      const { violation, both } = playAll(events, kinds, proposals);
      expect(violation).toBeNull();
      expect(both).toBeGreaterThan(1_000);
    },
    120_000,
  );

  // What the search would find if a step were left out: it can fail.
  const mistakes: readonly (readonly [Mistake, readonly Happening[]])[] = [
    ["takes a proposal without looking", []],
    ["stores without looking", ["expiry"]],
    ["stores for anybody", ["expiry"]],
    ["counter dies with the lock", ["expiry", "clock back"]],
    ["no quarantine", ["expiry", "restart"]],
  ];

  it.each(mistakes)(
    "but not with the mistake: %s",
    (mistake, kinds) => {
      expect(playAll(2, kinds, pairsOf([0, 2, 3]), mistake).violation).not.toBeNull();
    },
    120_000,
  );

  it("the limit: a node that forgets its counter and whose clock goes back as well", () => {
    expect(playAll(2, ["restart", "clock back"], pairsOf([0, 2, 3])).violation).not.toBeNull();
  }, 120_000);
});

describe("the script does what the model does", () => {
  let started: Started;
  let redis: Redis;

  beforeAll(async () => {
    started = await startRedis();
    redis = new Redis(started.port);
  });

  afterAll(async () => {
    redis.disconnect();
    await started.server.remove();
  });

  /** Calls the script on one node and gives what it says of the only call. */
  async function call(letter: string, ...args: readonly string[]): Promise<string> {
    const reply = await redis.eval(callsScript, 2, counterKey, "lock:a", "0", letter, ...args);
    if (!Array.isArray(reply)) throw new Error("the answer is no list");
    return String(reply[1]).replace(/^\*$/, "+");
  }

  it("the token of one node alone is given by that node, never ahead of its clock, so that not even a wiped one repeats it", async () => {
    const clients = [0, 1].map(
      () =>
        new LockManager(
          redlockBackend({ url: `redlock://127.0.0.1:${started.port}`, quarantineMs: 0, deadlineMs: 3_000 }),
        ),
    );
    try {
      let last = 0n;
      for (let turn = 0; turn < 40; turn++) {
        const lock = await clients[turn % 2]?.acquire("one", { wait: "5s" });
        const token = lock?.token ?? 0n;
        const [seconds = 0, micros = 0] = await redis.time();
        expect(token <= BigInt(seconds) * 1_000_000n + BigInt(micros)).toBe(true);
        expect(token > last).toBe(true);
        last = token;
        expect(await lock?.release()).toBe("released");
        if (turn % 4 === 3) await redis.flushall();
      }
      const tokens = await Promise.all(
        Array.from({ length: 100 }, async (_, index) => {
          const lock = await clients[0]?.acquire(`many-${index}`);
          return lock?.token ?? 0n;
        }),
      );
      expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
      expect(new Set(tokens).size).toBe(100);
    } finally {
      await Promise.all(clients.map((locks) => locks.close()));
    }
  });

  it("in a thousand random steps of two clients", async () => {
    const random = seeded(5);
    // Above its clock, so that the counter alone decides and both count alike.
    const start = 8_000_000_000_000_000;
    await redis.set(counterKey, start);
    const model: ModelNode = { owner: null, number: 0, isToken: false, counter: start, clock: 0 };
    for (let turn = 0; turn < 1_000; turn++) {
      const owner = below(random, 2);
      const id = `client-${owner}`;
      const step = pick(random, ["take", "take", "store", "store", "let go", "expiry"]);
      if (step === "take") {
        const proposal = pick(random, [0, model.counter, model.counter + 1, model.counter + 2, 9e15]);
        const said = await call("a", `${id}\0t${proposal}\0["c","h",1,2]`, "60000");
        const was = { ...model };
        const number = take(model, owner, proposal);
        const expected =
          number === null
            ? /^-\d+ client-/
            : was.owner === owner
              ? new RegExp(`^=${was.isToken ? "t" : "c"}${number} \\d+$`)
              : new RegExp(model.isToken ? `^\\+$` : `^\\+${number}$`);
        expect(said).toMatch(expected);
      } else if (step === "store") {
        const token = model.counter - 1 + below(random, 4);
        const said = await call("s", id, String(token));
        const isOwn = model.owner === owner;
        const stored = store(model, owner, token);
        const kept = new RegExp(`^=${model.isToken ? "t" : "c"}${model.number}$`);
        expect(said).toMatch(stored ? /^\+\d+$/ : isOwn ? kept : /^-$/);
      } else if (step === "let go") {
        expect(await call("d", id, "", "0")).toBe(letGo(model, owner) ? "+" : "-");
      } else {
        await redis.del("lock:a");
        model.owner = null;
      }
      expect(Number(await redis.get(counterKey))).toBe(model.counter);
    }
    expect(model.counter).toBeGreaterThan(start + 50);
  });
});
