/**
 * The machine of one simulated client: its clocks and timers, and what happens to them when it is paused, suspended or
 * killed. The larger progress of its two clocks is worked out by the core's own code.
 */
import { type Clock, largerProgress, slewMs, type Timer } from "../../core/clock.ts";
import type { Dice } from "./dice.ts";
import type { World } from "./world.ts";

const epochMs: number = Date.UTC(2026, 0, 1);

/** A machine. Nothing runs on it while it is paused; what came in meanwhile runs when it goes on. */
export class Host implements Clock {
  readonly proc: string;
  readonly now: () => number;
  /** How many timers are set. */
  timers = 0;
  /** When it was last paused, suspended, resumed, or its wall clock stepped. */
  disturbedAtUs: number = Number.NEGATIVE_INFINITY;
  readonly #world: World;
  #state: "running" | "paused" | "suspended" | "dead" = "running";
  #suspendedAtUs = 0;
  /** How long the monotonic clock stood still in all, and how far the wall clock was stepped. */
  #stoodStillUs = 0;
  #steppedMs = 0;
  #backlog: Array<() => void> = [];

  constructor(world: World, proc: string) {
    this.#world = world;
    this.proc = proc;
    this.now = largerProgress(
      () => this.#monotonicUs() / 1000,
      () => this.wallMs(),
    );
  }

  get running(): boolean {
    return this.#state === "running";
  }

  get dead(): boolean {
    return this.#state === "dead";
  }

  recent(): number {
    return this.now();
  }

  wallMs(): number {
    return epochMs + this.#world.nowUs / 1000 + this.#steppedMs;
  }

  after(ms: number, callback: () => void): Timer {
    // A timer never fires early, and never in the moment in which it was set.
    const dueUs = this.#monotonicUs() + Math.max(1, Math.ceil(ms * 1000));
    const alarm = { dueUs, callback, set: true };
    this.timers += 1;
    this.#plan(alarm);
    return {
      cancel: () => {
        if (alarm.set) this.timers -= 1;
        alarm.set = false;
      },
    };
  }

  /** Resolves after a while, by this machine's clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }

  /** Brings a message: it waits while the machine is paused and is lost when it is dead. */
  receive(delayUs: number, message: () => void): void {
    this.#world.after(delayUs, () => this.#take(message));
  }

  /** Stops it; the clocks go on. Of a suspended machine the monotonic clock stands still. */
  pause(suspend: boolean): void {
    if (this.#state !== "running") return;
    this.#state = suspend ? "suspended" : "paused";
    this.#suspendedAtUs = this.#world.nowUs;
    this.disturbedAtUs = this.#world.nowUs;
  }

  /** Goes on, with all that came in meanwhile at once, in any order. */
  resume(dice: Dice): void {
    if (this.#state !== "paused" && this.#state !== "suspended") return;
    const stoodUs = this.#state === "suspended" ? this.#world.nowUs - this.#suspendedAtUs : 0;
    // A shorter one the clocks cannot tell from slewing: the margin of belief covers it, and the history would not say so.
    if (stoodUs > (slewMs + 1) * 1000) this.#stoodStillUs += stoodUs;
    this.#state = "running";
    this.disturbedAtUs = this.#world.nowUs;
    const backlog = this.#backlog;
    this.#backlog = [];
    if (dice.chance(0.5)) dice.shuffle(backlog);
    for (const message of backlog) this.receive(0, message);
  }

  /** Nothing of it runs any more. */
  kill(): void {
    this.#state = "dead";
    this.#backlog = [];
  }

  /** Steps the wall clock. The step is seen before anything else happens to the clocks, as by the keeper's timer. */
  stepWall(ms: number): void {
    if (!this.running) return;
    this.#steppedMs += ms;
    this.disturbedAtUs = this.#world.nowUs;
    this.now();
  }

  #monotonicUs(): number {
    const now = this.#state === "suspended" ? this.#suspendedAtUs : this.#world.nowUs;
    return now - this.#stoodStillUs;
  }

  #plan(alarm: { readonly dueUs: number; readonly callback: () => void; set: boolean }): void {
    this.receive(alarm.dueUs - this.#monotonicUs(), () => {
      if (!alarm.set) return;
      if (this.#monotonicUs() < alarm.dueUs) return this.#plan(alarm);
      alarm.set = false;
      this.timers -= 1;
      alarm.callback();
    });
  }

  #take(message: () => void): void {
    if (this.#state === "running") message();
    else if (this.#state !== "dead") this.#backlog.push(message);
  }
}
