/** What a seed means for a run with real processes: which faults hit whom, when and for how long. Bringing them is left to nemesis.ts. */
import type { Dice } from "../simulate/dice.ts";

/** Faults of clients and of their network. */
export const clientFaults = [
  /** The process is stopped (SIGSTOP), and goes on later. */
  "pause",
  /** The process is killed (SIGKILL); another takes its place. */
  "kill",
  /** The event loop is blocked. */
  "hang",
  /** All messages are late. */
  "delay",
  /** Nothing arrives any more, in one direction or both. */
  "blackhole",
  /** Requests arrive, answers do not. */
  "drop-replies",
  /** A request arrives, and its connection is reset before the answer. */
  "reset",
  /** Requests are executed once more. */
  "replay",
] as const;

/** A fault of a client. */
export type ClientFault = (typeof clientFaults)[number];

/** Which of them go through a proxy. */
export const networkFaults: readonly ClientFault[] = [
  "delay",
  "blackhole",
  "drop-replies",
  "reset",
  "replay",
];

/** Faults of servers. A cluster has some of them; what each does is left to it. */
export const serverFaults = [
  /** A server stands still, with its connections open. */
  "server-pause",
  /** A server is killed, and comes back with its data. */
  "server-kill",
  /** A server is killed, and comes back without its data. */
  "server-empty",
  /** The wall clock of a server jumps forward. */
  "clock-jump",
  /** A replica that lags behind takes the place of its primary. */
  "promote",
  /** One server is cut off from the others. */
  "partition",
  /** The server that leads is cut off from the others. */
  "leader-partition",
] as const;

/** A fault of a server. */
export type ServerFaultKind = (typeof serverFaults)[number];

/** One fault that is to come. */
export interface PlannedFault {
  readonly kind: string;
  readonly atMs: number;
  readonly forMs: number;
  /** A number that picks whom it hits, and whatever else is left open. */
  readonly pick: number;
}

/** How long faults are, and how far apart. */
export interface Pace {
  /** When the first may come. */
  readonly fromMs: number;
  /** When all have to be over. */
  readonly untilMs: number;
  /** From the start of one to the start of the next; if not given, by the ttl, and so that there is time for every kind. */
  readonly gapMs?: readonly [least: number, most: number] | undefined;
  readonly ttlMs: number;
}

/** How long the shortest fault is, in ttls. */
const shortest = 0.3;

/** The faults of a run. Every kind comes before any comes twice. */
export function planFaults(kinds: readonly string[], pace: Pace, dice: Dice): readonly PlannedFault[] {
  const { fromMs, untilMs, ttlMs } = pace;
  const planned: PlannedFault[] = [];
  if (kinds.length === 0) return planned;
  const leastMs = shortest * ttlMs;
  const mostMs = Math.max(1, Math.min(0.9 * ttlMs, (untilMs - fromMs - leastMs) / kinds.length));
  const gapMs = pace.gapMs ?? ([mostMs / 4, mostMs] as const);
  let bag: string[] = [];
  for (let atMs = fromMs; ; atMs += dice.between(...gapMs)) {
    if (bag.length === 0) {
      bag = [...kinds];
      dice.shuffle(bag);
    }
    if (atMs + leastMs > untilMs) return planned;
    const forMs = Math.min(ttlMs * dice.pick(shortest, 0.7, 1.2, 1.6, 2.2), untilMs - atMs);
    planned.push({ kind: bag.pop() ?? "", atMs, forMs, pick: dice.fraction() });
  }
}
