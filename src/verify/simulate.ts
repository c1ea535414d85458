/**
 * The simulator: the real core over the real memory backend, in a world that is made from a seed and judged by the
 * checker. What a seed means is in simulate/plan.ts; the same seed always gives the same history.
 */
import { MemoryStore } from "../backends/memory/store.ts";
import type { NewEntry } from "../core/backend.ts";
import type { Clock } from "../core/clock.ts";
import { checkHistory, type CheckResult, INVARIANTS } from "./checker.ts";
import type { Invariant } from "./checks/check.ts";
import { History, type HistoryEvent } from "./history.ts";
import { type Scene, SimulatedClient } from "./simulate/client.ts";
import { Dice } from "./simulate/dice.ts";
import { Ledger } from "./simulate/ledger.ts";
import { Nemesis } from "./simulate/nemesis.ts";
import { longestTtlMs, type Plan, planOf } from "./simulate/plan.ts";
import { Resource } from "./simulate/resource.ts";
import { useLocks } from "./simulate/workload.ts";
import { World } from "./simulate/world.ts";

/** How long a waiter may go on waiting once all faults are healed. */
const longestWaitMs = 40_000;

/** What a seed led to. */
export interface Simulated {
  readonly seed: number;
  readonly plan: Plan;
  readonly events: readonly HistoryEvent[];
  readonly result: CheckResult;
  /** How many acknowledged writes were undone where nothing was fenced: what fencing prevents. */
  readonly undoneUnfenced: number;
}

/** Runs one seed. */
export async function simulate(seed: number): Promise<Simulated> {
  const simulation = new Simulation(seed);
  while (simulation.step()) await settled();
  return simulation.judge();
}

/**
 * Runs many seeds, several at a time, since most of the cost of a step is the wait until all promises have settled.
 * Stops early when `onEnd` says false.
 */
export async function simulateAll(
  seeds: Iterable<number>,
  onEnd: (simulated: Simulated) => boolean,
  atOnce = 8,
): Promise<void> {
  const next = seeds[Symbol.iterator]();
  const running = new Set<Simulation>();
  const refill = (): void => {
    while (running.size < atOnce) {
      const { value, done } = next.next();
      if (done === true) return;
      running.add(new Simulation(value));
    }
  };
  for (refill(); running.size > 0; refill()) {
    for (const simulation of running) {
      if (simulation.step()) continue;
      running.delete(simulation);
      if (!onEnd(simulation.judge())) return;
    }
    await settled();
  }
}

/** Resolves when all promises that can settle have settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** How long after the last operation nothing is on its way any more, and no entry is left that nobody renews. */
const quietMs: number = 5 * longestTtlMs;

/** How long close may take. */
const closeMs = 10_000;

type Phase = "working" | "quieting" | "closing" | "ending" | "over";

class Simulation {
  readonly #scene: Scene;
  readonly #clients: readonly SimulatedClient[];
  readonly #nemesis: Nemesis;
  #phase: Phase = "working";
  #untilUs = 0;
  #closing = 0;
  #entriesLeft = 0;

  constructor(seed: number) {
    const plan = planOf(seed);
    const world = new World();
    const history = new History({ now: () => world.nowNs });
    const store = new MemoryStore(storeClock(world));
    const firstSeq = firstSeqOf(store);
    const ledger = new Ledger(world, firstSeq, plan.calm);
    const resource = new Resource(history);
    const scene: Scene = { plan, world, store, history, ledger, resource, firstSeq };
    this.#scene = scene;
    this.#clients = Array.from({ length: plan.clients }, (_, index) => new SimulatedClient(scene, index));
    this.#nemesis = new Nemesis(scene, this.#clients, new Dice(seed, 1));
    this.#enter("working", plan.healMs + longestWaitMs);
    for (const client of this.#clients) {
      for (let lane = 0; lane < plan.lanes; lane += 1) void useLocks(client);
    }
  }

  /** Lets one thing happen. False when all is over. */
  step(): boolean {
    this.#advance();
    return this.#phase !== "over" && this.#scene.world.step();
  }

  judge(): Simulated {
    const { plan, history, ledger, resource } = this.#scene;
    ledger.close();
    const { events } = history;
    const checked = checkHistory(events, { invariants: claims(plan), waitMs: longestWaitMs });
    const violations = [...ledger.violations, ...checked.violations];
    const result: CheckResult =
      violations.length === 0 ? checked : { ...checked, verdict: "invalid", violations };
    return { seed: plan.seed, plan, events, result, undoneUnfenced: resource.undone };
  }

  /** A phase lasts until its work is done, or until its time is over. */
  #enter(phase: Phase, forMs: number): void {
    const { world } = this.#scene;
    this.#phase = phase;
    this.#untilUs = world.nowUs + Math.ceil(forMs * 1000);
    world.after(forMs * 1000, () => {});
  }

  #advance(): void {
    const timeIsOver = this.#scene.world.nowUs >= this.#untilUs;
    if (this.#phase === "working" && (timeIsOver || !this.#atWork())) {
      this.#nemesis.heal();
      this.#enter("quieting", quietMs);
    } else if (this.#phase === "quieting" && timeIsOver) {
      this.#entriesLeft = this.#entries();
      this.#enter("closing", closeMs);
      for (const { locks } of this.#alive()) {
        this.#closing += 1;
        void locks.close().then(() => (this.#closing -= 1));
      }
    } else if (this.#phase === "closing" && (timeIsOver || this.#closing === 0)) {
      this.#enter("ending", quietMs);
    } else if (this.#phase === "ending" && timeIsOver) {
      this.#end();
      this.#phase = "over";
    }
  }

  #atWork(): boolean {
    for (const { users, host } of this.#clients) if (users > 0 && !host.dead) return true;
    return false;
  }

  #alive(): readonly SimulatedClient[] {
    return this.#clients.filter(({ host }) => !host.dead);
  }

  #entries(): number {
    const { store } = this.#scene;
    let entries = 0;
    for (const queue of store.queues("")) entries += store.list(queue).length;
    return entries;
  }

  #end(): void {
    const { history, resource, store } = this.#scene;
    for (const name of resource.names) {
      const about = { proc: "resource", f: "read", resource: name } as const;
      history.record({ ...about, type: "invoke" });
      history.record({ ...about, type: "ok", values: resource.read(name, null) ?? [] });
    }
    const alive = this.#alive();
    const sum = (count: (client: SimulatedClient) => number): number =>
      alive.reduce((total, client) => total + count(client), 0);
    const leaks = {
      entries: Math.max(this.#entriesLeft, this.#entries()),
      timers: sum(({ host }) => host.timers),
      watches: sum(({ network }) => network.watches),
      closing: this.#closing,
    };
    store.rest();
    history.record({ proc: "world", f: "end", type: "info", leaks, pending: sum(({ pending }) => pending) });
  }
}

/**
 * What a run must keep: all, with four exceptions. A steal breaks the order (F1). Only without faults every answer is
 * exact (A1). A request that is executed again once its entry is gone makes a new one with the same id, so that a
 * release may find something although the lock was lost long ago (M5). An answer that is
 * on its way for long leaves little of a ttl, and nothing in the history says so (L4).
 */
function claims({ calm, steals, weather }: Plan): readonly Invariant[] {
  return INVARIANTS.filter((invariant) => {
    if (invariant === "F1") return !steals;
    if (invariant === "A1") return calm && !steals;
    if (invariant === "L4") return false;
    return invariant !== "M5" || weather.duplicate === 0;
  });
}

/** The store's clock is the world's. */
function storeClock(world: World): Clock {
  const now = (): number => world.nowUs / 1000;
  return {
    now,
    recent: now,
    wallMs: now,
    after(ms, callback) {
      let set = true;
      world.after(ms * 1000, () => {
        if (set) callback();
      });
      return {
        cancel: () => {
          set = false;
        },
      };
    },
  };
}

/** The seq before the first one that this store will give: it goes on where the last store of the process stopped. */
function firstSeqOf(store: MemoryStore): bigint {
  const probe: NewEntry = {
    id: "probe",
    owner: { client: "probe", host: "probe", pid: 0 },
    mode: "write",
    weight: 1,
    ttlMs: 1,
  };
  const snapshot = store.append("probe", probe, { closed: false, evicted: () => {} });
  store.remove("probe", "probe", false);
  store.rest();
  return snapshot?.self.seq ?? 0n;
}
