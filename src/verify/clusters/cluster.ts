/** What a throwaway cluster is, and the faults that all servers have in common: they stand still, they die, their clock jumps. */
import type { Fault } from "../../core/backend.ts";
import type { ServerFault } from "../live/nemesis.ts";
import type { ServerFaultKind } from "../live/plan.ts";
import type { ClockShim } from "../servers/clock-shim.ts";
import type { ServerProcess } from "../servers/server-process.ts";

/** Servers of one's own, to be broken. */
export interface Cluster {
  /** Where clients find it, whatever happens to its servers. */
  readonly url: string;
  readonly faults: readonly ServerFault[];
  /** Faults that it would have if this machine could make them, and what to do about that. */
  readonly impossible: ReadonlyMap<ServerFaultKind, string>;
  /** The kinds that are brought if nobody says which. */
  readonly usual: readonly string[];
  /** What it runs, for people. */
  readonly version: string;
  stop(): Promise<void>;
}

/** How many of something a draw picks. */
export function pickFrom<T>(pick: number, things: readonly T[]): T {
  const thing = things[Math.floor(pick * things.length)];
  if (thing === undefined) throw new Error("there is nothing to pick from");
  return thing;
}

type Named = readonly [name: string, server: ServerProcess];

/** A server stands still, with its connections open. */
export function serverPause(servers: readonly Named[], is: Fault | null = "store-pause"): ServerFault {
  return {
    kind: "server-pause",
    is,
    strike: async (pick) => {
      const [target, server] = pickFrom(pick, servers);
      server.pause();
      return { target, heal: async () => server.resume() };
    },
  };
}

/** A server is killed, and comes back with the data that it had. */
export function serverKill(servers: readonly Named[]): ServerFault {
  return {
    kind: "server-kill",
    is: null,
    strike: async (pick) => {
      const [target, server] = pickFrom(pick, servers);
      await server.kill();
      return { target, heal: () => server.start() };
    },
  };
}

/** A server is killed, and comes back without the data that it had. */
export function serverEmpty(
  servers: readonly Named[],
  empty: (server: ServerProcess) => Promise<void>,
): ServerFault {
  return {
    kind: "server-empty",
    is: "store-restart",
    strike: async (pick) => {
      const [target, server] = pickFrom(pick, servers);
      await server.kill();
      await empty(server);
      return { target, heal: () => server.start() };
    },
  };
}

/** By how much a clock jumps: longer than any ttl. */
const jumpMs = 60_000;

const noClock =
  process.platform === "linux"
    ? "what changes the clock of one server has to be compiled: install a C compiler, such as gcc"
    : "the clock of one server can be changed on Linux only";

/** The clocks of servers, as far as they could be made, as faults of a cluster. */
export function clockFaults(
  clocks: readonly (readonly [name: string, clock: ClockShim | null])[],
): Pick<Cluster, "faults" | "impossible"> {
  const made = clocks.flatMap(([name, clock]) => (clock === null ? [] : [[name, clock] as const]));
  if (made.length === 0) return { faults: [], impossible: new Map([["clock-jump", noClock]]) };
  return { faults: [clockJump(made)], impossible: new Map() };
}

/** The wall clock of a server jumps forward, and stays there. */
function clockJump(clocks: readonly (readonly [name: string, clock: ClockShim])[]): ServerFault {
  const ahead = new Map<ClockShim, number>();
  return {
    kind: "clock-jump",
    is: "clock-step",
    strike: async (pick) => {
      const [target, clock] = pickFrom(pick, clocks);
      const next = (ahead.get(clock) ?? 0) + jumpMs;
      ahead.set(clock, next);
      await clock.set(next);
      return { target };
    },
  };
}
