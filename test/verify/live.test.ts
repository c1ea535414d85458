/** The parts of `holdfast verify` that decide: which faults come, what a resource takes, what is promised, what was false. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import type { Entry, Fault, NewEntry, Traits } from "../../src/core/backend.ts";
import { LockError } from "../../src/core/errors.ts";
import { LockManager } from "../../src/core/manager.ts";
import type { Invariant } from "../../src/verify/checks/check.ts";
import { History, type NewEvent } from "../../src/verify/history.ts";
import { Fleet } from "../../src/verify/live/fleet.ts";
import { judge, type Row } from "../../src/verify/live/judge.ts";
import { Nemesis, type ServerFault } from "../../src/verify/live/nemesis.ts";
import { clientFaults, planFaults } from "../../src/verify/live/plan.ts";
import { ResourceLogs } from "../../src/verify/live/resource.ts";
import { Observer } from "../../src/verify/live/observer.ts";
import { findWay, looseAnswers, Route } from "../../src/verify/live/routes.ts";
import { useNamesOfObjects } from "../../src/verify/live/stories/naming.ts";
import { Party } from "../../src/verify/live/stories/party.ts";
import { tallyWrites } from "../../src/verify/live/tally.ts";
import { Users } from "../../src/verify/live/workload.ts";
import { Dice } from "../../src/verify/simulate/dice.ts";
import { block } from "../helpers/blocked-loop.ts";
import { noTask } from "../helpers/no-task.ts";

describe("the plan", () => {
  const pace = { fromMs: 1_000, untilMs: 60_000, gapMs: [200, 900], ttlMs: 1_000 } as const;

  it("is the same for the same seed, and another for another", () => {
    const plan = (seed: number): unknown => planFaults(clientFaults, pace, new Dice(seed, 1));
    expect(plan(7)).toEqual(plan(7));
    expect(plan(7)).not.toEqual(plan(8));
  });

  it("brings every kind before any comes twice, and ends in time", () => {
    const planned = planFaults(clientFaults, pace, new Dice(3, 1));
    const first = planned.slice(0, clientFaults.length).map(({ kind }) => kind);
    expect(first.toSorted()).toEqual([...clientFaults].toSorted());
    for (const { atMs, forMs } of planned) {
      expect(atMs).toBeGreaterThanOrEqual(pace.fromMs);
      expect(atMs + forMs).toBeLessThanOrEqual(pace.untilMs);
    }
  });
});

describe("the plan of a short run", () => {
  it("has every kind if there is time for each, if only for a short one", () => {
    const ttlMs = 2_000;
    for (const [kinds, untilMs] of [
      [3, 6_000],
      [8, 10_000],
      [10, 10_000],
    ] as const) {
      const faults = Array.from({ length: kinds }, (_, index) => `fault ${index}`);
      for (let seed = 1; seed <= 200; seed += 1) {
        const planned = planFaults(faults, { fromMs: 0, untilMs, ttlMs }, new Dice(seed, 1));
        expect(new Set(planned.map(({ kind }) => kind)).size, `seed ${seed}`).toBe(kinds);
        for (const { atMs, forMs } of planned) expect(atMs + forMs).toBeLessThanOrEqual(untilMs);
      }
    }
  });
});

it("a plan ends, too, where there is time for one fault and no more", () => {
  const pace = { fromMs: 0, untilMs: 600, ttlMs: 2_000 };
  expect(planFaults(["pause", "kill"], pace, new Dice(1, 1))).toHaveLength(1);
});

describe("a resource", () => {
  const write = (token: bigint, at: number, value: string) => ({
    name: "a",
    token,
    attempt: value,
    at,
    value,
  });

  it("with the fence refuses a token below the highest that it has seen, by a read too", () => {
    const logs = new ResourceLogs(new History(), true);
    expect(logs.write(write(5n, 0, "x"))).toBe(true);
    expect(logs.write(write(5n, 1, "y"))).toBe(true);
    expect(logs.read("a", 7n)).toBe(2);
    expect(logs.write(write(6n, 2, "late"))).toBe(false);
    expect(logs.read("a", 6n)).toBe(null);
    expect(logs.values("a")).toEqual(["x", "y"]);
    expect(logs.counts).toEqual({ accepted: 2, refused: 1, undone: 0 });
  });

  it("without the fence takes everything, and counts what is undone", () => {
    const logs = new ResourceLogs(new History(), false);
    logs.write(write(7n, 0, "x"));
    logs.write(write(7n, 1, "y"));
    expect(logs.write(write(3n, 0, "late"))).toBe(true);
    expect(logs.values("a")).toEqual(["late"]);
    expect(logs.counts).toEqual({ accepted: 3, refused: 0, undone: 2 });
  });
});

/** Records events, a microsecond after each other. */
function recorded(...events: readonly NewEvent[]): History {
  let t = 0n;
  const history = new History({ now: () => (t += 1_000n) });
  for (const event of events) history.record(event);
  return history;
}

const take = (proc: string, token: bigint, validUntil: bigint): readonly NewEvent[] => [
  { proc, f: "acquire", type: "invoke", lock: "a", attempt: proc },
  { proc, f: "acquire", type: "ok", attempt: proc, token, validUntil },
];
const refuse = (attempt: string, token: bigint): NewEvent => ({
  proc: "fenced",
  f: "guard",
  type: "fail",
  resource: "a",
  attempt,
  token,
});
const accept = (proc: "fenced" | "unfenced", attempt: string, token: bigint): NewEvent => ({
  proc,
  f: "guard",
  type: "ok",
  resource: "a",
  attempt,
  value: attempt,
  ...(proc === "fenced" ? { token } : {}),
});

describe("the tally", () => {
  it("counts a stale write that was accepted, by the token of its attempt", () => {
    const { events } = recorded(
      ...take("p", 1n, 10n ** 9n),
      ...take("q", 2n, 10n ** 9n),
      accept("unfenced", "q", 2n),
      accept("unfenced", "p", 1n),
      accept("fenced", "q", 2n),
      refuse("p", 1n),
    );
    expect(tallyWrites(events)).toMatchObject({
      fenced: { accepted: 1, staleAccepted: 0, refused: 1, falseRejects: 0 },
      unfenced: { accepted: 2, staleAccepted: 1 },
    });
  });

  it("calls it false when the last holder is refused inside its validity, and only then", () => {
    const refused = (until: bigint): number =>
      tallyWrites(recorded(...take("p", 9n, 10n ** 9n), ...take("q", 2n, until), refuse("q", 2n)).events)
        .fenced.falseRejects;
    expect(refused(10n ** 9n)).toBe(1);
    expect(refused(4_500n)).toBe(0);
  });
});

describe("the judge", () => {
  const { traits } = memoryBackend({ store: "traits" });
  const frail: Traits = { ...traits, exclusivityBrokenBy: ["fail-over"], tokensRegressAfter: ["clock-step"] };
  const overlap = [
    ...take("p", 1n, 10n ** 9n),
    ...take("q", 2n, 10n ** 9n),
    { proc: "nemesis", f: "end", type: "info", leaks: {}, pending: 0 },
  ] as const;

  function judged(suffered: readonly Fault[], of: Traits = frail): { verdict: string; rows: readonly Row[] } {
    const { rows, result } = judge(recorded(...overlap).events, {
      traits: of,
      suffered: new Set(suffered),
      replayed: false,
      looseAnswers: null,
      waitMs: 1,
      calmWaitMs: 1,
    });
    return { verdict: result.verdict, rows };
  }

  it("holds an overlap against a store that promised there would be none", () => {
    expect(judged([]).verdict).toBe("invalid");
    expect(judged(["clock-step"]).verdict).toBe("invalid");
  });

  it("counts and shows it where nothing is promised, and does not hold it against the store", () => {
    const { verdict, rows } = judged(["fail-over"]);
    expect(verdict).toBe("valid");
    expect(rows.find(({ invariant }) => invariant === "M1")).toMatchObject({
      found: 1,
      waived: "not promised after fail-over",
    });
  });

  type Happened = readonly [atMs: number, event: NewEvent];
  /** How often an invariant is found to be broken. */
  function found(invariant: Invariant, happened: readonly Happened[]): number | undefined {
    let t = 0n;
    const history = new History({ now: () => t });
    for (const [atMs, event] of happened) {
      t = BigInt(atMs) * 1_000_000n;
      history.record(event);
    }
    const { rows } = judge(history.events, {
      traits,
      suffered: new Set(),
      replayed: false,
      looseAnswers: null,
      waitMs: 60_000,
      calmWaitMs: 1_000,
    });
    return rows.find((row) => row.invariant === invariant)?.found;
  }
  const end: NewEvent = { proc: "nemesis", f: "end", type: "info", leaks: {}, pending: 0 };
  const asks: NewEvent = { proc: "p", f: "acquire", attempt: "p", type: "invoke", lock: "calm/a" };
  /** Somebody waits on a lock of the calm opening; gives how often that is found to be too long. */
  function waited(...rest: readonly Happened[]): number | undefined {
    return found("L1", [[0, asks], ...rest, [9_000, end]]);
  }
  const fault = { proc: "nemesis", f: "fault" } as const;
  const kill: NewEvent = { ...fault, type: "info", fault: "kill", target: "p" };
  const cut: NewEvent = { ...fault, type: "invoke", fault: "blackhole", target: "p" };
  const healed: NewEvent = { ...cut, type: "ok" };
  const ok: NewEvent = { proc: "p", f: "acquire", type: "ok", attempt: "p", token: 1n };

  it("blames nobody for a wait that a fault made longer, or that ended with its client", () => {
    expect(waited([900, kill])).toBe(0);
    expect(waited([900, cut], [4_000, healed], [4_100, ok])).toBe(0);
  });

  const stall: NewEvent = { ...fault, type: "invoke", fault: "stall", target: "q" };
  const goesOn: NewEvent = { ...stall, type: "ok" };
  const other = { proc: "q", lock: "calm/b", attempt: "q" } as const;
  const holds = [
    [0, { ...other, f: "acquire", type: "invoke" }],
    [0, { ...other, f: "acquire", type: "ok", token: 1n }],
  ] as const;
  const leaves: NewEvent = { ...other, f: "release", type: "invoke" };
  const left: NewEvent = { ...other, f: "release", type: "ok" };

  it("blames nobody for a wait while the machine was slow, for as long as it was", () => {
    expect(waited([100, stall], [900, goesOn], [1_700, ok])).toBe(0);
    expect(waited([100, stall], [900, goesOn], [1_900, ok])).toBe(1);
    expect(waited(...holds, [500, leaves], [700, left], [1_900, ok])).toBe(0);
    expect(waited(...holds, [500, leaves], [700, left], [2_100, ok])).toBe(1);
  });

  it("blames nobody for a wait for a lock that its holder lost while somebody stood still, until the ttl of that is over", () => {
    const loses = (lock: string): readonly Happened[] => [
      [0, { proc: "q", f: "acquire", attempt: "h", type: "invoke", lock, ttl: 2_000 }],
      [0, { proc: "q", f: "acquire", attempt: "h", type: "ok", token: 1n }],
      [50, stall],
      [60, { proc: "q", f: "lost", attempt: "h", type: "info" }],
      [70, goesOn],
    ];
    expect(waited(...loses("calm/a"), [2_900, ok])).toBe(0);
    expect(waited(...loses("calm/a"), [3_100, ok])).toBe(1);
    expect(waited(...loses("calm/b"), [2_900, ok])).toBe(1);
    // Nor does it hide that somebody was robbed and the next not told.
    expect(waited(...loses("calm/a").filter((_, place) => place !== 2 && place !== 4), [2_900, ok])).toBe(1);
    expect(waited(...loses("calm/a").slice(0, 2), [2_900, ok])).toBe(1);
  });

  it("blames a wait that was too long, even if the machine was slow at another time", () => {
    expect(waited([1_100, ok], [1_200, stall], [2_200, goesOn])).toBe(1);
    expect(waited(...holds, [1_100, ok], [1_200, leaves], [2_200, left])).toBe(1);
  });

  it("blames a wait that was too long before the first fault, or without any", () => {
    expect(waited([1_100, kill])).toBe(1);
    expect(waited([1_100, cut], [4_000, healed], [4_100, ok])).toBe(1);
    expect(waited([1_100, ok])).toBe(1);
    expect(waited()).toBe(1);
  });

  it("blames nobody for a lock that lasted less than it should while somebody stood still, and only then", () => {
    const lasts = { ...asks, ttl: 1_000 };
    const granted = (validUntilMs: number): NewEvent => ({
      ...ok,
      validUntil: BigInt(validUntilMs) * 1_000_000n,
    });
    const lost: NewEvent = { proc: "p", f: "lost", type: "info", attempt: "p" };
    const kept = (...rest: readonly Happened[]): number | undefined =>
      found("L4", [[0, lasts], ...rest, [9_000, end]]);
    expect(kept([100, granted(1_000)], [500, lost])).toBe(1);
    expect(kept([100, granted(1_000)], [480, stall], [500, lost], [510, goesOn])).toBe(0);
    expect(kept([100, granted(1_000)], [500, lost], [600, stall], [900, goesOn])).toBe(1);
    expect(kept([100, granted(300)])).toBe(1);
    expect(kept([80, stall], [100, granted(300)], [110, goesOn])).toBe(0);
    expect(kept([100, granted(300)], [200, stall], [600, goesOn])).toBe(1);
  });

  it("says nothing certain where nothing was granted", () => {
    const { events } = recorded(end);
    const { result } = judge(events, {
      traits,
      suffered: new Set(),
      replayed: false,
      looseAnswers: null,
      waitMs: 1,
      calmWaitMs: 1,
    });
    expect(result.verdict).toBe("unknown");
  });
});

describe("the nemesis", () => {
  it("heals a fault, too, that is just being brought, and brings no other", async () => {
    const told: string[] = [];
    let strike: () => void = () => {};
    const fault: ServerFault = {
      kind: "server-pause",
      is: null,
      strike: () =>
        new Promise((resolve) => {
          told.push("struck");
          strike = () => resolve({ target: "server", heal: async () => void told.push("healed") });
        }),
    };
    const nemesis = new Nemesis(new History(), new Fleet("memory:", "", noTask), [fault]);
    const planned = { kind: "server-pause", atMs: 0, forMs: 60_000, pick: 0 };
    const running = nemesis.run([planned, { ...planned, atMs: 1 }], () => false);
    await expect.poll(() => told).toEqual(["struck"]);
    const healing = nemesis.heal();
    strike();
    await healing;
    expect(told).toEqual(["struck", "healed"]);
    await running;
    expect(told).toEqual(["struck", "healed"]);
  });
});

describe("users", () => {
  it("object to nothing that they see just when they have stood still", async () => {
    const store = randomUUID();
    const history = new History();
    const observer = new Observer(history, "c1");
    const unused = { read: async () => null, write: async () => undefined };
    const users = new Users({
      locks: new LockManager(memoryBackend({ store }), { ttl: 100, label: "c1" }),
      observer,
      dice: new Dice(1, 1),
      fenced: unused,
      unfenced: unused,
      prefix: "verify/x/",
      ttlMs: 100,
      calmUntil: process.hrtime.bigint() + 3_000_000_000n,
      lanes: 0,
      place: 0,
      duetLanes: 2,
      ownStore: false,
      // Whoever looks stands still meanwhile, and finds nobody.
      open: async () => {
        const list = async (): Promise<readonly Entry[]> => {
          block(400);
          return [];
        };
        return Object.assign(memoryBackend({ store }), { list });
      },
    });
    await users.run();
    expect(observer.stalls).toBeGreaterThan(0);
    expect(observer.violations).toEqual([]);
  });
});

describe("the way to a store", () => {
  it("knows which stores can stand behind a proxy", () => {
    expect(findWay("redis://u:p@h:7000/1")).toEqual({ closed: null, noReplay: null });
    expect(findWay("etcd://a,b,c/x").noReplay).toContain("its own connection");
    expect(findWay("sqlite:/x").closed).toContain("plain TCP");
    for (const secure of [
      "rediss://h",
      "rediss+cluster://h",
      "redlocks://a,b,c",
      "etcds://h:2379",
      "zookeepers://h:2281",
      "postgres://h/db?sslmode=require",
    ]) {
      expect(findWay(secure).closed).toContain("certificate");
    }
    expect(findWay("postgres://h/db?sslmode=disable").closed).toBe(null);
    expect(findWay("sqlite:/var/tls/x").closed).toContain("plain TCP");
    for (const found of ["redis+cluster://h", "redis+sentinel://h/primary"]) {
      expect(findWay(found).closed).toContain("by themselves");
    }
  });

  it("puts a proxy in front of each server, and keeps the rest of the address", async () => {
    const route = await Route.open("etcd://me:secret@10.0.0.1:2379,10.0.0.2:2380/prefix?names=plain");
    const [first, second] = route.proxies.map(({ port }) => `127.0.0.1:${port}`);
    expect(route.url).toBe(`etcd://me:secret@${first},${second}/prefix?names=plain`);
    await route.close();
  });

  it("knows whose answers about state need not be exact", () => {
    expect(looseAnswers("zookeeper://h:2181")).not.toBe(null);
    expect(looseAnswers("redis://h")).toBe(null);
  });
});

describe("the story of names that every object has", () => {
  /** Tells it on a store that refuses some appends; gives what was objected to. */
  async function told(refuses: (queue: string) => boolean): Promise<readonly string[]> {
    const backend = memoryBackend();
    const append = backend.append.bind(backend);
    Object.assign(backend, {
      append: (queue: string, entry: NewEntry) =>
        refuses(queue) ? Promise.reject(new LockError("LOCK_UNAVAILABLE", "not now")) : append(queue, entry),
    });
    const locks = new LockManager(backend, {});
    const me = new Party(locks, new Observer({ record: (event) => ({ i: 0, t: 0n, ...event }) }, "c1"));
    const messages: string[] = [];
    await useNamesOfObjects({
      me,
      name: (word) => `own/${word}`,
      longTtlMs: 1_000,
      object: (_, text) => void messages.push(text),
    });
    await locks.close();
    return messages;
  }

  it("objects to a store that refuses these alone", async () => {
    expect(await told((queue) => queue in {})).toHaveLength(3);
  });

  it("says nothing of one that refuses all names, or each of them once", async () => {
    expect(await told(() => true)).toEqual([]);
    const seen = new Set(["own/plain"]);
    const once = (queue: string): boolean => !seen.has(queue) && seen.add(queue).has(queue);
    expect(await told(once)).toEqual([]);
  });
});
