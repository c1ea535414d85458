/** What befalls the clients of a simulation, as planned, and the end of it all. Each fault is part of the history. */
import type { Scene, SimulatedClient } from "./client.ts";
import type { Dice } from "./dice.ts";
import { fairWeather, type PlannedFault } from "./plan.ts";

/** Brings faults, and heals them. */
export class Nemesis {
  readonly #scene: Scene;
  readonly #clients: readonly SimulatedClient[];
  readonly #dice: Dice;
  #healed = false;

  constructor(scene: Scene, clients: readonly SimulatedClient[], dice: Dice) {
    this.#scene = scene;
    this.#clients = clients;
    this.#dice = dice;
    const { plan, world } = scene;
    if (plan.calm) return;
    this.#record("network", "invoke", "everybody");
    for (const fault of plan.faults) world.after(fault.atMs * 1000, () => this.#bring(fault));
    world.after(plan.healMs * 1000, () => this.heal());
  }

  /** Ends all faults; the dead stay dead. */
  heal(): void {
    if (this.#healed) return;
    this.#healed = true;
    if (this.#scene.plan.calm) return;
    for (const client of this.#clients) {
      client.network.weather = fairWeather;
      this.#resume(client);
    }
    this.#record("network", "ok", "everybody");
  }

  #bring({ kind, client: index, ms }: PlannedFault): void {
    const client = this.#clients[index];
    if (this.#healed || client === undefined || client.host.dead) return;
    const { host, proc } = client;
    if (kind === "kill") {
      if (!host.running) this.#resume(client);
      host.kill();
      this.#record("kill", "info", proc);
    } else if (!host.running) {
      return;
    } else if (kind === "step") {
      // A step back before anybody has read the clock after a suspension would hide the suspension: nobody could tell.
      if (ms < 0) host.now();
      host.stepWall(ms);
      this.#record("step", "info", proc, `${Math.round(ms)} ms`);
    } else {
      host.pause(kind === "suspend");
      this.#record("pause", "invoke", proc, kind);
      this.#scene.world.after(ms * 1000, () => this.#resume(client));
    }
  }

  #resume(client: SimulatedClient): void {
    if (client.host.running || client.host.dead) return;
    client.host.resume(this.#dice);
    this.#record("pause", "ok", client.proc);
  }

  #record(fault: string, type: "invoke" | "ok" | "info", target: string, detail?: string): void {
    const { history } = this.#scene;
    history.record({
      proc: "nemesis",
      f: "fault",
      type,
      fault,
      target,
      ...(detail === undefined ? {} : { detail }),
    });
  }
}
