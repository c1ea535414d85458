/**
 * A run with real processes from beginning to end: starts clients and resources against a store, brings faults by a seed,
 * heals, waits, looks for what was left behind, and judges what was recorded. Whatever happens, it leaves no process, no
 * file and no entry of its own behind, and touches no lock that it did not make.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openBackend } from "../../connect.ts";
import type { Backend } from "../../core/backend.ts";
import { LockError } from "../../core/errors.ts";
import { demand } from "../../core/traits.ts";
import type { Violation } from "../checks/check.ts";
import { History, type HistoryEvent } from "../history.ts";
import { makeFolder, removeFolder } from "../servers/server-process.ts";
import { Dice } from "../simulate/dice.ts";
import { type Ended, endsWithin, Fleet, type LiveResource, startResource } from "./fleet.ts";
import { joinRecords } from "./join-records.ts";
import { judge, withMore } from "./judge.ts";
import { type Left, leftWithin, sweep } from "./leftovers.ts";
import { Nemesis } from "./nemesis.ts";
import { networkFaults, planFaults } from "./plan.ts";
import { findWay, looseAnswers } from "./routes.ts";
import { calmWaitTtls } from "./stories/story.ts";
import { tallyWrites } from "./tally.ts";
import type { Progress, Verified, VerifyOptions } from "./verified.ts";

/** Runs it. Rejects with a LockError if the store cannot be used at all. */
export async function verifyStore(options: VerifyOptions): Promise<Verified> {
  const run = new Run(options, await makeFolder("verify"));
  try {
    return await run.all();
  } finally {
    await run.end();
  }
}

/** Which of the faults that were asked for cannot be had, with this store or on this machine, and why. */
function impossibleFaults({ url, faults, impossible }: VerifyOptions): ReadonlyMap<string, string> {
  const { closed, noReplay } = findWay(url);
  const found = new Map<string, string>();
  for (const fault of faults) {
    const inTheWay =
      fault === "replay" ? noReplay : networkFaults.some((each) => each === fault) ? closed : null;
    const why = inTheWay ?? impossible?.get(fault);
    if (why !== undefined) found.set(fault, why);
  }
  return found;
}

const longestStartMs = 60_000;

/** How long the stories of the calm opening may go on when its time is over. */
const longestCalmMs = 20_000;

class Run {
  readonly #options: VerifyOptions;
  readonly #folder: string;
  readonly #prefix = `verify/${randomBytes(6).toString("hex")}/`;
  readonly #history = new History();
  readonly #waitMs: number;
  #backend: Backend | null = null;
  #fleet: Fleet | null = null;
  #nemesis: Nemesis | null = null;
  #resources: readonly LiveResource[] = [];
  #startedAt = performance.now();
  #phase: Progress["phase"] = "starting";

  constructor(options: VerifyOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.#waitMs = 15_000 + 3 * options.ttlMs;
  }

  async all(): Promise<Verified> {
    const options = this.#options;
    this.#backend = await openBackend(options.url, true);
    // One that excludes only clients of one process has nothing to show to several.
    demand(this.#backend.name, this.#backend.traits, { scope: "machine" });
    // A store that cannot be reached is not worth a run.
    await this.#unlessAborted(sweep(this.#backend, this.#prefix, false));
    const impossible = impossibleFaults(options);
    const possible = options.faults.filter((fault) => !impossible.has(fault));
    const fleet = await this.#start();
    const nemesis = new Nemesis(this.#history, fleet, options.servers ?? []);
    this.#nemesis = nemesis;
    await this.#suffer(nemesis, possible);
    this.#phase = "healing";
    await nemesis.heal();
    if (nemesis.failure !== null) throw nemesis.failure;
    const violations = await this.#finish(fleet);
    const ended = await Promise.all(fleet.all.map((client) => client.ended));
    await this.#close(ended);
    this.#phase = "checking";
    this.#tell();
    const events = await joinRecords(fleet, this.#resources, this.#history.events);
    const { traits, name } = this.#backend;
    const circumstances = {
      traits,
      suffered: nemesis.suffered,
      replayed: (nemesis.counts.get("replay") ?? 0) > 0,
      looseAnswers: looseAnswers(options.url),
      waitMs: this.#waitMs,
      calmWaitMs: calmWaitTtls * options.ttlMs,
    };
    const missing = possible.filter((fault) => !nemesis.counts.has(fault));
    const doubts = missing.map((fault) => `There was no time for a ${fault}.`);
    return {
      judgement: withMore(judge(events, circumstances), violations, doubts),
      events,
      traits,
      backend: name,
      writes: tallyWrites(events),
      grants: events.filter(isGrant).length,
      losses: events.filter(({ f }) => f === "lost").length,
      faults: nemesis.counts,
      impossible,
      samples: new Map(fleet.all.map(({ proc, samples }) => [proc, samples])),
    };
  }

  /** Ends and removes all that is left. */
  async end(): Promise<void> {
    await this.#nemesis?.heal().catch(() => {});
    await this.#fleet?.end();
    await Promise.all(this.#resources.map((resource) => resource.stop()));
    const backend = this.#backend;
    if (backend !== null) {
      await sweep(backend, this.#prefix, true).catch(() => {});
      await backend.close().catch(() => {});
    }
    await removeFolder(this.#folder);
  }

  async #start(): Promise<Fleet> {
    const options = this.#options;
    this.#tell();
    const [fenced, unfenced] = await Promise.all([
      startResource(this.#folder, "fenced"),
      startResource(this.#folder, "unfenced"),
    ]);
    this.#resources = [fenced, unfenced];
    const fleet = new Fleet(options.url, this.#folder, {
      fencedPort: fenced.port,
      unfencedPort: unfenced.port,
      prefix: this.#prefix,
      ttlMs: options.ttlMs,
      calmMs: this.#calmMs,
      lanes: options.lanes ?? 2,
      seed: options.seed,
      ownStore: options.ownStore === true,
    });
    this.#fleet = fleet;
    await Promise.all(Array.from({ length: options.clients }, (_, place) => fleet.join(place)));
    await this.#unlessAborted(startedWithin(longestStartMs, fleet));
    this.#startedAt = performance.now();
    return fleet;
  }

  get #calmMs(): number {
    return Math.min(6_000, this.#options.forMs * 0.3);
  }

  /** The calm opening, and then the faults, until the time is over. */
  async #suffer(nemesis: Nemesis, faults: readonly string[]): Promise<void> {
    const { forMs, ttlMs, seed, gapMs, signal } = this.#options;
    this.#phase = "calm";
    const ticking = setInterval(() => {
      for (const client of this.#fleet?.current ?? []) client.measure();
      this.#tell();
    }, 500);
    let over = false;
    try {
      await this.#unlessAborted(this.#beCalm());
      this.#phase = "faults";
      // On a slow machine the opening may take its time: there are faults all the same.
      const untilMs = Math.max(forMs - (performance.now() - this.#startedAt), forMs / 2);
      const plan = planFaults(faults, { fromMs: 0, untilMs, gapMs, ttlMs }, new Dice(seed, 1));
      await this.#unlessAborted(
        // The ticking keeps the process: a run that was ended early must not.
        Promise.all([
          nemesis.run(plan, () => over || signal?.aborted === true),
          sleep(untilMs, undefined, { ref: false }),
        ]),
      );
    } finally {
      over = true;
      clearInterval(ticking);
    }
  }

  /** Waits until the time of the calm opening is over, and what began in it has ended. */
  async #beCalm(): Promise<void> {
    const settled = (this.#fleet?.current ?? []).map((client) => client.settled);
    await sleep(this.#calmMs + 2_000, undefined, { ref: false });
    await endsWithin(longestCalmMs, Promise.all(settled));
  }

  /** Lets all clients end. Gives what went wrong that no history shows. */
  async #finish(fleet: Fleet): Promise<readonly Violation[]> {
    this.#tell();
    const late = await this.#unlessAborted(fleet.finish(this.#waitMs + 10_000));
    const violations = late.map(({ proc }) => unexpected(`The client ${proc} did not end.`));
    for (const client of fleet.all) {
      if (client.killedAt !== null || late.includes(client)) continue;
      const said = await client.ended;
      if (said === null) violations.push(unexpected(`The client ${client.proc} ended by itself.`));
      violations.push(...(said?.violations ?? []));
    }
    return violations;
  }

  /** Reads the resources once more, and looks what was left behind. */
  async #close(ended: readonly (Ended | null)[]): Promise<void> {
    await Promise.all(this.#resources.map(({ connection }) => connection.end()));
    const leaks: Record<string, number> = { ...(await this.#leftovers()) };
    for (const said of ended) {
      for (const [kind, count] of Object.entries(said?.leaks ?? {})) leaks[kind] = (leaks[kind] ?? 0) + count;
    }
    const pending = ended.reduce((sum, said) => sum + (said?.pending ?? 0), 0);
    this.#history.record({ proc: "nemesis", f: "end", type: "info", leaks, pending });
  }

  /** Entries of clients that were killed live until their ttl is over, and a lease or session may be longer. */
  #leftovers(): Promise<Left> {
    const withinMs = 3 * this.#options.ttlMs + 10_000;
    return this.#unlessAborted(leftWithin(withinMs, this.#backend, this.#prefix));
  }

  #tell(): void {
    const { onProgress, forMs } = this.#options;
    const clients = this.#fleet?.all ?? [];
    const grants = clients.reduce((sum, { measured }) => sum + measured.grants, 0);
    const faults = [...(this.#nemesis?.counts.values() ?? [])].reduce((sum, count) => sum + count, 0);
    const elapsedMs = performance.now() - this.#startedAt;
    onProgress?.({ phase: this.#phase, elapsedMs, totalMs: forMs, grants, faults });
  }

  /** What is waited for, unless somebody ends the run. */
  #unlessAborted<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#options;
    if (signal === undefined) return work;
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(signal.reason);
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
      // Also when nobody waits for it any more: what is ended half-way fails, and nobody else would hear of it.
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
  }
}

async function startedWithin(ms: number, fleet: Fleet): Promise<void> {
  const started = Promise.all(fleet.current.map((client) => client.started));
  if (await endsWithin(ms, started)) await started;
  else throw new LockError("LOCK_UNAVAILABLE", `the clients could not connect within ${ms / 1_000} s`);
}

function unexpected(message: string): Violation {
  return { invariant: "L3", message, events: [] };
}

function isGrant({ f, type, busy }: HistoryEvent): boolean {
  return (f === "acquire" || f === "try") && type === "ok" && busy !== true;
}
