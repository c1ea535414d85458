/**
 * The engine of `holdfast verify` in one process, over any backend: the same users, observers, resources and judge, with
 * a layer in place of the proxies that delays, loses and repeats calls, and clients that are cut off for ever in place of
 * processes that are killed.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import { type Backend, type Browsable, type Entry, isBrowsable } from "../../src/core/backend.ts";
import { type Clock, systemClock, type Timer } from "../../src/core/clock.ts";
import { LockManager } from "../../src/core/manager.ts";
import { semaphoreQueue } from "../../src/core/names.ts";
import type { ClockedStore } from "../../src/testing/broken/broken.ts";
import type { ContractStore } from "../../src/testing/store.ts";
import { checkHistory } from "../../src/verify/checker.ts";
import type { Invariant } from "../../src/verify/checks/check.ts";
import { History, type HistoryEvent, mergeHistories, type NewEvent } from "../../src/verify/history.ts";
import { endsWithin } from "../../src/verify/live/fleet.ts";
import type { Recording } from "../../src/verify/live/history-file.ts";
import { judge, type Judgement, withMore } from "../../src/verify/live/judge.ts";
import { Observer } from "../../src/verify/live/observer.ts";
import { type Resource, ResourceLogs } from "../../src/verify/live/resource.ts";
import { calmWaitTtls } from "../../src/verify/live/stories/story.ts";
import { Users } from "../../src/verify/live/workload.ts";
import { Dice } from "../../src/verify/simulate/dice.ts";
import { Way, type Weather } from "./way.ts";

const ttlMs = 400;
const clientCount = 4;

/** When nothing was recorded for so long, whoever has not ended does not end. */
const quietMs = 4_000;

/** So long may an end take in any case. */
const longestEndMs = 20_000;

interface Client {
  readonly way: Way;
  /** All that it has opened. */
  readonly inners: readonly Backend[];
  readonly locks: LockManager;
  readonly observer: Observer;
  readonly users: Users;
  readonly done: Promise<void>;
}

/** Makes the store to be judged out of one that works. */
export type Breaking = (store: ClockedStore) => ContractStore;

/** What a run is like. */
export interface RunOptions {
  readonly seed: number;
  /** How long its opening is, in which nothing is broken but the store, in milliseconds. */
  readonly calmMs: number;
  /** How long it is in all but for its end. */
  readonly forMs: number;
}

/** Runs it until something is found, or the time is over. */
export async function verifyInProcess(open: Breaking, options: RunOptions): Promise<Judgement> {
  const clock = new CountingClock();
  const name = randomUUID();
  const store = open({
    clock,
    client: () => memoryBackend({ store: name, clock }),
    close: async () => {},
  });
  try {
    return await new Rig(store, clock, options).run(options.forMs);
  } finally {
    await store.close();
  }
}

/** The system's clock, which knows how many of its timers are set: the store's own, since users have another clock. */
class CountingClock implements Clock {
  timers = 0;
  readonly now = (): number => systemClock.now();
  readonly recent = (): number => systemClock.recent();
  readonly wallMs = (): number => systemClock.wallMs();

  after(ms: number, callback: () => void): Timer {
    let set = true;
    const over = (): void => {
      if (set) this.timers -= 1;
      set = false;
    };
    this.timers += 1;
    const timer = systemClock.after(ms, () => {
      over();
      callback();
    });
    return {
      cancel: () => {
        over();
        timer.cancel();
      },
    };
  }
}

class Rig {
  readonly #store: ContractStore;
  readonly #clock: CountingClock;
  readonly #history = new History();
  readonly #fenced = new ResourceLogs(this.#history, true);
  readonly #unfenced = new ResourceLogs(this.#history, false);
  readonly #prefix = "verify/x/";
  readonly #calmUntil: bigint;
  readonly #seed: number;
  /** Calls are repeated in runs with an odd seed only: then a release may find what was made by a repetition (M5). */
  readonly #repeats: boolean;
  readonly #clients: Client[] = [];
  readonly #dead = new Map<string, readonly Backend[]>();
  #made = 0;

  constructor(store: ContractStore, clock: CountingClock, { seed, calmMs }: RunOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#calmUntil = process.hrtime.bigint() + BigInt(calmMs * 1e6);
    this.#seed = seed;
    this.#repeats = seed % 2 === 1;
  }

  async run(forMs: number): Promise<Judgement> {
    const until = performance.now() + forMs;
    for (let place = 0; place < clientCount; place += 1) this.#clients.push(await this.#join());
    const dice = new Dice(this.#seed, 1);
    const healing: Promise<void>[] = [];
    while (process.hrtime.bigint() < this.#calmUntil) {
      await sleep(700);
      if (this.#judge(["M1", "M2", "M3", "M5", "M6", "F1"])) return this.#finish();
    }
    await sleep(500);
    await Promise.race([sleep(quietMs), Promise.all(this.#clients.map(({ users }) => users.settled))]);
    if (this.#judgeCalm()) return this.#finish();
    for (const { way } of this.#clients) way.weather = "fair";
    let judgedAt = performance.now();
    while (performance.now() < until) {
      await sleep(dice.between(0, ttlMs));
      healing.push(this.#strike(dice));
      // Judging takes time from those who are judged.
      if (performance.now() - judgedAt < 1_500) continue;
      if (this.#judge(["M1", "M2", "M3", "M6", "F1"])) break;
      judgedAt = performance.now();
    }
    await Promise.all(healing);
    return this.#finish();
  }

  async #join(): Promise<Client> {
    this.#made += 1;
    const proc = `c${this.#made}`;
    const dice = new Dice(this.#seed, 100 + this.#made);
    const calm = process.hrtime.bigint() < this.#calmUntil;
    const way = new Way(dice, calm ? "stumbling" : "fair");
    const recording: Recording = { record: (event, t) => this.#record(proc, event, t) };
    const observer = new Observer(recording, proc);
    const inner = await this.#open();
    const inners: Backend[] = [inner];
    const locks = new LockManager(way.through(inner), { ttl: ttlMs, clientId: proc, label: proc });
    const users = new Users({
      locks,
      observer,
      dice,
      fenced: asResource(this.#fenced),
      unfenced: asResource(this.#unfenced),
      prefix: this.#prefix,
      ttlMs,
      calmUntil: this.#calmUntil,
      lanes: 2,
      place: this.#made - 1,
      duetLanes: 8,
      ownStore: true,
      open: async () => {
        const another = await this.#open();
        inners.push(another);
        return way.through(another);
      },
    });
    return { way, inners, locks, observer, users, done: users.run() };
  }

  async #open(): Promise<Backend & Browsable> {
    const backend = await this.#store.client();
    if (!isBrowsable(backend)) throw new TypeError("the store cannot name its queues");
    return backend;
  }

  async #strike(dice: Dice): Promise<void> {
    const place = dice.whole(0, this.#clients.length - 1);
    const client = this.#clients[place];
    if (client === undefined || client.way.weather !== "fair") return;
    const repeat: Weather = this.#repeats ? "repeat" : "drop-replies";
    const weather = dice.pick<Weather>("late", "blackhole", "drop-replies", repeat, "dead");
    const { proc } = client.observer;
    client.way.weather = weather;
    if (weather === "dead") {
      this.#dead.set(proc, client.inners);
      for (const each of client.observer.procs) this.#recordFault("info", "kill", each);
      client.users.stop();
      this.#clients[place] = await this.#join();
      return;
    }
    this.#recordFault("invoke", weather, proc);
    await sleep(ttlMs * dice.between(0.3, 2));
    client.way.weather = "fair";
    this.#recordFault("ok", weather, proc);
  }

  /** The dead say nothing. What is asked for counts from the last time that the clock was read: from now on, after the record. */
  #record(proc: string, event: NewEvent, t?: bigint): HistoryEvent {
    if (this.#dead.has(proc)) return { i: 0, t: 0n, ...event };
    const recorded = this.#history.record(event, t);
    if (event.type === "invoke") this.#clock.now();
    return recorded;
  }

  #recordFault(type: "invoke" | "ok" | "info", fault: string, target: string): void {
    this.#history.record({ proc: "nemesis", f: "fault", type, fault, target });
  }

  async #finish(): Promise<Judgement> {
    for (const { users } of this.#clients) users.stop();
    await this.#within(this.#clients.map(({ done }) => done));
    await this.#within(this.#clients.map(({ locks }) => locks.close()));
    await sleep(2.5 * ttlMs);
    this.#fenced.recordAll();
    const witness = await this.#open();
    const left = await this.#left(witness);
    await witness.close();
    // What dies has no timers.
    for (const inner of [...this.#dead.values()].flat()) await inner.close();
    const leaks = { ...left, timers: this.#clock.timers };
    const pending = this.#clients.reduce((sum, { observer }) => sum + observer.pending, 0);
    this.#history.record({ proc: "nemesis", f: "end", type: "info", leaks, pending });
    return this.#judgeAll();
  }

  /** Waits for all of them, unless for a while nothing has happened: on a busy machine everything takes longer. */
  async #within(work: readonly Promise<unknown>[]): Promise<void> {
    const ended = Promise.all(work);
    const { events } = this.#history;
    let [seen, quietSince] = [events.length, performance.now()];
    const until = quietSince + longestEndMs;
    while (!(await endsWithin(20, ended)) && performance.now() < Math.min(until, quietSince + quietMs)) {
      if (events.length > seen) quietSince = performance.now();
      seen = events.length;
    }
  }

  /** What is left, once the entries of the dead have had their time. What the living have left is counted at once: it might go later. */
  async #left(witness: Backend & Browsable): Promise<{ queues: number; entries: number }> {
    const until = performance.now() + this.#afterlifeMs();
    for (;;) {
      const [locks, semaphores] = [
        witness.queues(this.#prefix),
        witness.queues(semaphoreQueue(this.#prefix)),
      ];
      const queues = [...(await locks), ...(await semaphores)];
      const lists = await Promise.all(queues.map((queue) => witness.list(queue)));
      const isOfDead = ({ owner }: Entry): boolean => this.#dead.has(owner.label?.split("/")[0] ?? "");
      const lawful = lists.every((entries) => entries.length > 0 && entries.every(isOfDead));
      if (queues.length === 0 || !lawful || performance.now() > until) {
        return { queues: queues.length, entries: lists.flat().length };
      }
      await sleep(100);
    }
  }

  /** For how long entries of the dead may still be there: for the ttl of what they had not given back, from their death on. */
  #afterlifeMs(): number {
    let until = 0n;
    const ttls = new Map<string, number>();
    const { events } = this.#history;
    for (const { attempt, ttl, f, type } of events) {
      if (attempt === undefined) continue;
      if (ttl !== undefined) ttls.set(attempt, ttl);
      if ((f === "release" && type === "ok") || f === "lost") ttls.delete(attempt);
    }
    for (const { fault, target, t } of events) {
      if (fault !== "kill") continue;
      const own = [...ttls].filter(([attempt]) => attempt.startsWith(`${target}.`)).map(([, ttl]) => ttl);
      const ends = t + BigInt(Math.ceil(Math.max(0, ...own) * 1e6));
      if (ends > until) until = ends;
    }
    return Number(until - process.hrtime.bigint()) / 1e6;
  }

  /** Whether something is broken that can never become right again. */
  #judge(invariants: readonly Invariant[]): boolean {
    if (this.#clients.some(({ observer }) => observer.violations.length > 0)) return true;
    const { violations } = checkHistory(mergeHistories(this.#history.events), { invariants, steps: 10_000 });
    return violations.length > 0;
  }

  /** Whether the calm opening has shown something. Calls that are under way have not ended yet. */
  #judgeCalm(): boolean {
    if (this.#clients.some(({ observer }) => observer.violations.length > 0)) return true;
    return this.#judgeAll().result.violations.some(({ invariant }) => invariant !== "L3");
  }

  #judgeAll(): Judgement {
    const { traits } = memoryBackend({ store: "traits" });
    const judged = judge(mergeHistories(this.#history.events), {
      traits,
      suffered: new Set(),
      replayed: this.#repeats,
      looseAnswers: null,
      waitMs: 3_500,
      calmWaitMs: calmWaitTtls * ttlMs,
    });
    return withMore(
      judged,
      this.#clients.flatMap(({ observer }) => observer.violations),
      [],
    );
  }
}

function asResource(logs: ResourceLogs): Resource {
  return {
    read: async (name, token) => logs.read(name, token),
    write: async (write) => logs.write(write),
  };
}
