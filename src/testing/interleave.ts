/** Random small programs over several clients and two names, checked at each grant; each program has a seed of its own. */
import assert from "node:assert/strict";
import type { Random } from "../core/clock.ts";
import { hasCode } from "../core/errors.ts";
import type { Lock } from "../core/lock.ts";
import type { LockManager } from "../core/manager.ts";
import { semaphoreQueue } from "../core/names.ts";
import { times } from "./look.ts";
import { below, pick, seeded } from "./random.ts";
import type { Stage } from "./stage.ts";

const permits = 3;

/** One request of a program. */
interface Ask {
  readonly client: LockManager;
  readonly name: string;
  readonly kind: "exclusive" | "shared" | "permit";
  readonly weight: number;
  readonly controller: AbortController;
  /** Whether it is refused rather than made to wait. */
  readonly atOnce: boolean;
  state: "pending" | "held" | "ended";
  lock: Lock | null;
  /** Whether one that was asked for later, and excludes it, was granted before it. */
  passed: boolean;
}

/** What the programs of one store have in common. */
interface Setting {
  readonly t: Stage;
  readonly clients: readonly LockManager[];
  readonly ordered: boolean;
  readonly fenced: boolean;
  readonly kinds: readonly Ask["kind"][];
}

/** Runs so many programs, one after the other, on fresh names. */
export async function interleave(t: Stage, programs: number): Promise<void> {
  const clients = await times(3, () => t.manager());
  const { shared, counted, order, tokens } = await t.traits();
  const kinds: Ask["kind"][] = ["exclusive", "exclusive"];
  if (shared) kinds.push("shared", "shared");
  if (counted) kinds.push("permit");
  const setting = { t, clients, ordered: order === "fifo", fenced: tokens !== null, kinds };
  for (let index = 0; index < programs; index++) {
    const seed = t.pace.seed * 1_000_003 + index;
    try {
      await new Program(setting, seeded(seed)).run();
    } catch (cause) {
      throw new Error(`program ${index} of seed ${t.pace.seed}: ${String(cause)}`, { cause });
    }
  }
}

/** One program: asks, releases and aborts in random order, until all that it asked for has ended. */
class Program {
  readonly #setting: Setting;
  readonly #random: Random;
  readonly #names: readonly string[];
  readonly #asks: Ask[] = [];
  readonly #wrong: string[] = [];
  readonly #tokens = new Map<string, { exclusive: bigint; any: bigint }>();

  constructor(setting: Setting, random: Random) {
    this.#setting = setting;
    this.#random = random;
    this.#names = [setting.t.name("a"), setting.t.name("b")];
  }

  async run(): Promise<void> {
    const { t } = this.#setting;
    const steps = 6 + below(this.#random, 8);
    for (let step = 0; step < steps; step++) {
      this.#step();
      await t.dawdle();
    }
    await t.eventually("all requests end", () => {
      for (const ask of this.#in("held")) this.#release(ask);
      return this.#in("ended").length === this.#asks.length;
    });
    assert.deepEqual(this.#wrong, []);
    for (const name of this.#names) {
      await t.eventuallyHas(name, 0);
      if (this.#setting.kinds.includes("permit")) await t.eventuallyHas(semaphoreQueue(name), 0);
    }
  }

  #in(state: Ask["state"]): Ask[] {
    return this.#asks.filter((ask) => ask.state === state);
  }

  #step(): void {
    const [chance, held, pending] = [this.#random(), this.#in("held"), this.#in("pending")];
    if (chance < 0.3 && held.length > 0) this.#release(pick(this.#random, held));
    else if (chance < 0.45 && pending.length > 0) pick(this.#random, pending).controller.abort("random");
    else this.#ask();
  }

  #ask(): void {
    const kind = pick(this.#random, this.#setting.kinds);
    const ask: Ask = {
      client: pick(this.#random, this.#setting.clients),
      name: pick(this.#random, this.#names),
      kind,
      weight: kind === "permit" ? 1 + below(this.#random, permits) : 1,
      controller: new AbortController(),
      atOnce: this.#random() < 0.25,
      state: "pending",
      lock: null,
      passed: false,
    };
    this.#asks.push(ask);
    this.#take(ask).then(
      (lock) => this.#granted(ask, lock),
      (error: unknown) => {
        ask.state = "ended";
        const aborted = hasCode(error, "LOCK_ABORTED") && ask.controller.signal.aborted;
        if (!aborted) this.#wrong.push(`a request failed: ${String(error)}`);
      },
    );
  }

  #take({ client, name, kind, weight, controller, atOnce }: Ask): Promise<Lock | null> {
    const { signal } = controller;
    if (kind === "permit") {
      const pool = client.semaphore(name, permits);
      return atOnce ? pool.tryAcquire({ weight }) : pool.acquire({ weight, signal });
    }
    return atOnce ? client.tryAcquire(name, { mode: kind }) : client.acquire(name, { mode: kind, signal });
  }

  #granted(ask: Ask, lock: Lock | null): void {
    ask.state = lock === null ? "ended" : "held";
    if (lock === null) return;
    ask.lock = lock;
    this.#checkExclusion(ask);
    if (this.#setting.ordered) this.#checkOrder(ask);
    if (this.#setting.fenced) this.#checkToken(ask, lock);
  }

  /** What we believe is held lies within what is held, so an overlap that we see is one. */
  #checkExclusion(ask: Ask): void {
    const beside = this.#in("held").filter((other) => other !== ask && meets(other, ask));
    if (ask.kind !== "permit") {
      if (beside.some((other) => conflict(ask, other))) this.#wrong.push("two who exclude each other hold");
      return;
    }
    const used = beside.reduce((sum, { weight }) => sum + weight, ask.weight);
    if (used > permits) this.#wrong.push(`${used} of ${permits} permits are held`);
  }

  /** One that is refused rather than made to wait may hear of it after the next is granted: only if it is granted, too, was it overtaken. */
  #checkOrder(ask: Ask): void {
    const before = this.#asks.slice(0, this.#asks.indexOf(ask));
    const passed = before.filter(
      (other) =>
        other.state === "pending" &&
        !other.controller.signal.aborted &&
        other.client === ask.client &&
        meets(other, ask) &&
        conflict(other, ask),
    );
    for (const other of passed) other.passed = true;
    const overtaken = ask.passed || passed.some(({ atOnce }) => !atOnce);
    if (overtaken) this.#wrong.push("a request overtook an earlier one of its client");
  }

  /** Above all that it excludes; those who hold together may hear of it in any order. */
  #checkToken(ask: Ask, { token }: Lock): void {
    const queue = ask.kind === "permit" ? semaphoreQueue(ask.name) : ask.name;
    const highest = this.#tokens.get(queue) ?? { exclusive: 0n, any: 0n };
    const floor = ask.kind === "exclusive" ? highest.any : highest.exclusive;
    if (token <= floor) this.#wrong.push(`token ${token} after ${floor}`);
    if (token > highest.any) highest.any = token;
    if (ask.kind === "exclusive") highest.exclusive = token;
    this.#tokens.set(queue, highest);
  }

  #release(ask: Ask): void {
    ask.state = "ended";
    ask.lock?.release().then(
      (outcome) => outcome === "released" || this.#wrong.push("a lock was gone at its release"),
      (error: unknown) => this.#wrong.push(`a release failed: ${String(error)}`),
    );
  }
}

/** Whether two requests stand in the same queue. */
function meets(a: Ask, b: Ask): boolean {
  return a.name === b.name && (a.kind === "permit") === (b.kind === "permit");
}

/** Whether two requests for locks exclude each other. */
function conflict(a: Ask, b: Ask): boolean {
  return a.kind === "exclusive" || b.kind === "exclusive";
}
