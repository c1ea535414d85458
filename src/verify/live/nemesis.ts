/** Brings the planned faults, records each, and heals them. What a fault of a server does is left to whoever runs the servers. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../../core/backend.ts";
import type { Recording } from "./history-file.ts";
import { endsWithin, type Fleet, type LiveClient } from "./fleet.ts";
import type { PlannedFault, ServerFaultKind } from "./plan.ts";

/** Ends a fault. */
export type Heal = () => Promise<void>;

/** A fault of a server. */
export interface ServerFault {
  readonly kind: ServerFaultKind;
  /** What it is by the words of the traits; null where every store survives it. */
  readonly is: Fault | null;
  /** Brings it. Gives whom it hit and how to end it; no end where it has no length. */
  strike(pick: number, fleet: Fleet): Promise<{ readonly target: string; readonly heal?: Heal | undefined }>;
}

type Strike = (client: LiveClient, fault: PlannedFault) => Heal | Promise<Heal>;

const nothing: Heal = async () => {};

/** The faults of clients that have a length, and how each begins and ends. */
const strikes: Readonly<Record<string, Strike>> = {
  pause: (client) => {
    client.pause();
    return async () => client.resume();
  },
  hang: (client, { forMs }) => {
    const woke = client.hang(forMs);
    return async () => {
      await endsWithin(forMs + 1_000, woke);
    };
  },
  delay: ({ route }, { pick, forMs }) => {
    for (const { up, down } of route.proxies) {
      for (const lane of pick < 0.3 ? [up] : pick < 0.6 ? [down] : [up, down]) {
        lane.delayMs = forMs / 10;
        lane.jitterMs = forMs / 3;
      }
    }
    return async () => route.proxies.forEach((proxy) => proxy.heal());
  },
  blackhole: ({ route }, { pick }) => {
    for (const { up, down } of route.proxies) {
      up.swallow = pick < 0.7;
      down.swallow = pick > 0.3;
    }
    return async () => route.proxies.forEach((proxy) => proxy.heal());
  },
  "drop-replies": ({ route }) => {
    for (const { down } of route.proxies) down.swallow = true;
    return async () => route.proxies.forEach((proxy) => proxy.heal());
  },
  reset: ({ route }, { pick }) => {
    for (const proxy of route.proxies) proxy.resetAfter = 1 + Math.floor(pick * 3);
    return async () => route.proxies.forEach((proxy) => proxy.heal());
  },
  replay: ({ route }) => {
    for (const proxy of route.proxies) proxy.replay();
    return nothing;
  },
};

/** Who brings the faults of one run. */
export class Nemesis {
  /** How often each kind was brought. */
  readonly counts: Map<string, number> = new Map();
  /** What happened to the store, by the words of the traits. */
  readonly suffered: Set<Fault> = new Set();
  /** Why a fault could not be brought or healed: then the run is worth nothing. */
  failure: unknown = null;
  readonly #history: Recording;
  readonly #fleet: Fleet;
  readonly #servers: ReadonlyMap<string, ServerFault>;
  /** What is under way, by whom it hits. */
  readonly #active = new Map<string, Heal>();
  readonly #joining = new Set<Promise<unknown>>();
  #bringing: Promise<boolean> = Promise.resolve(false);
  #over = false;

  constructor(history: Recording, fleet: Fleet, servers: readonly ServerFault[]) {
    this.#history = history;
    this.#fleet = fleet;
    this.#servers = new Map(servers.map((fault) => [fault.kind, fault]));
  }

  /** Brings each fault at its time, counted from now; one that finds nobody to hit comes in place of the next. */
  async run(plan: readonly PlannedFault[], isOver: () => boolean): Promise<void> {
    const startedAt = performance.now();
    const postponed: PlannedFault[] = [];
    for (const planned of plan) {
      const waitMs = startedAt + planned.atMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { ref: false });
      if (isOver() || this.#over) return;
      postponed.push(planned);
      for (const fault of postponed.slice(0, 3)) {
        this.#bringing = this.#bring(fault);
        if (!(await this.#bringing)) continue;
        postponed.splice(postponed.indexOf(fault), 1);
        break;
      }
    }
  }

  /** Ends all faults, one that is just being brought too; the dead stay dead. */
  async heal(): Promise<void> {
    this.#over = true;
    await this.#bringing.catch(() => false);
    await Promise.all([...this.#active.values()].map((heal) => heal()));
    await Promise.all(this.#joining);
  }

  /** False if there is nobody whom it could hit now. */
  async #bring(fault: PlannedFault): Promise<boolean> {
    const server = this.#servers.get(fault.kind);
    if (server !== undefined) return this.#bringToServer(server, fault);
    const free = this.#fleet.current.filter(
      (client) => client.alive && client.measured.atMs > 0 && !this.#active.has(client.proc),
    );
    const client = free[Math.floor(fault.pick * free.length)];
    if (client === undefined) return false;
    if (fault.kind === "kill") {
      this.#kill(client);
      return true;
    }
    const strike = strikes[fault.kind];
    if (strike === undefined) throw new Error(`there is no fault ${fault.kind}`);
    const heal = await strike(client, fault);
    if (heal === nothing) {
      this.#record("info", fault.kind, client.proc);
      return true;
    }
    this.#record("invoke", fault.kind, client.proc, `${Math.round(fault.forMs)} ms`);
    this.#keep(fault, client.proc, heal);
    return true;
  }

  async #bringToServer(server: ServerFault, fault: PlannedFault): Promise<boolean> {
    if (this.#active.has("servers")) return false;
    this.#active.set("servers", nothing);
    if (server.is !== null) this.suffered.add(server.is);
    const { target, heal } = await server.strike(fault.pick, this.#fleet);
    if (heal === undefined) {
      this.#active.delete("servers");
      this.#record("info", fault.kind, target);
      return true;
    }
    this.#record("invoke", fault.kind, target, `${Math.round(fault.forMs)} ms`);
    this.#keep(fault, target, heal, "servers");
    return true;
  }

  /** Sees to it that a fault ends once, at its time or with all others. */
  #keep(fault: PlannedFault, target: string, heal: Heal, key = target): void {
    let healing: Promise<void> | null = null;
    const healOnce = (): Promise<void> => {
      clearTimeout(timer);
      healing ??= heal().then(() => {
        this.#active.delete(key);
        this.#history.record({ proc: "nemesis", f: "fault", type: "ok", fault: fault.kind, target });
      });
      return healing;
    };
    const timer = setTimeout(() => void healOnce().catch(this.#fail), fault.forMs);
    this.#active.set(key, healOnce);
  }

  /** The record of it is made when all is over: after the last thing that the client has recorded itself. */
  #kill(client: LiveClient): void {
    this.#count("kill");
    const place = this.#fleet.current.indexOf(client);
    const replace = async (): Promise<void> => {
      await client.kill();
      await this.#fleet.join(place);
    };
    const joining = replace().catch(this.#fail);
    this.#joining.add(joining);
  }

  #record(type: "invoke" | "info", fault: string, target: string, detail?: string): void {
    this.#count(fault);
    const about = { proc: "nemesis", f: "fault", type, fault, target } as const;
    this.#history.record(detail === undefined ? about : { ...about, detail });
  }

  readonly #fail = (error: unknown): void => {
    this.failure ??= error;
  };

  #count(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
}
