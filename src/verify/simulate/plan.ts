/** What a seed stands for: how many clients do how much, in which weather, and what befalls them when. */
import { Dice } from "./dice.ts";
import type { Weather } from "./network.ts";

/** Something that befalls one client. */
export interface PlannedFault {
  readonly kind: "pause" | "suspend" | "kill" | "step";
  readonly client: number;
  readonly atMs: number;
  /** How long it lasts; for a step, by how much the wall clock is moved. */
  readonly ms: number;
}

/** A whole scenario. */
export interface Plan {
  readonly seed: number;
  /** No fault at all: then every answer must be exact, and nothing may be left to its ttl. */
  readonly calm: boolean;
  readonly clients: number;
  /** How many things a client does at the same time, and how many one after the other. */
  readonly lanes: number;
  readonly operations: number;
  readonly weather: Weather;
  readonly steals: boolean;
  /** Whether a client hands a lock to its own next entry without asking the store. */
  readonly handOvers: boolean;
  readonly ttlMs: number;
  readonly permits: number;
  readonly faults: readonly PlannedFault[];
  /** When all faults end. */
  readonly healMs: number;
}

/** The weather of a run without faults, and of every run after its faults were healed. */
export const fairWeather: Weather = {
  delayMs: 8,
  slow: 0,
  slowMs: 0,
  dropRequest: 0,
  dropReply: 0,
  duplicate: 0,
  refuse: 0,
  hang: 0,
  dropHint: 0,
  deadlineMs: 1_000,
};

/** The longest ttl that a plan has. */
export const longestTtlMs = 900;

/** The plan of a seed. Each kind of fault is in some plans only, so that one does not hide the other. */
export function planOf(seed: number): Plan {
  const dice = new Dice(seed, 0);
  const calm = dice.chance(0.25);
  const clients = dice.whole(3, 5);
  const lanes = dice.whole(1, 2);
  const ttlMs = dice.between(250, longestTtlMs);
  const healMs = dice.between(3, 6) * ttlMs;
  return {
    seed,
    calm,
    clients,
    lanes,
    operations: Math.ceil(dice.whole(20, 30) / clients / lanes),
    weather: calm ? fairWeather : foulWeather(dice, ttlMs),
    steals: dice.chance(calm ? 0.1 : 0.25),
    handOvers: seed % 2 === 1,
    ttlMs,
    permits: dice.whole(2, 3),
    faults: calm ? [] : faultsOf(dice, clients, ttlMs, healMs),
    healMs,
  };
}

function foulWeather(dice: Dice, ttlMs: number): Weather {
  const sometimes = (most: number): number => (dice.chance(0.5) ? dice.between(0, most) : 0);
  return {
    delayMs: dice.pick(5, 20, ttlMs / 8),
    slow: sometimes(0.2),
    slowMs: ttlMs * dice.pick(0.5, 1, 2),
    dropRequest: sometimes(0.15),
    dropReply: sometimes(0.15),
    duplicate: sometimes(0.3),
    refuse: sometimes(0.1),
    hang: sometimes(0.5),
    dropHint: sometimes(0.6),
    deadlineMs: ttlMs * dice.pick(0.3, 0.7, 1.5),
  };
}

function faultsOf(dice: Dice, clients: number, ttlMs: number, healMs: number): PlannedFault[] {
  const faults: PlannedFault[] = [];
  const anyone = (): number => dice.whole(0, clients - 1);
  const add = (kind: PlannedFault["kind"], most: number, ms: () => number, whom = anyone): void => {
    if (dice.chance(0.5)) return;
    const times = dice.whole(1, most);
    for (let time = 0; time < times; time += 1) {
      faults.push({ kind, client: whom(), atMs: dice.between(0, healMs), ms: ms() });
    }
  };
  // A stand-still that the slack for slewing could hide is no fault that a clock reading can find.
  add("pause", 5, () => ttlMs * dice.pick(0.2, 0.6, 1.1, 1.8));
  add("suspend", 3, () => Math.max(60, ttlMs * dice.pick(0.3, 0.8, 1.3)));
  add("step", 4, () => dice.pick(-1, 1) * dice.pick(60, ttlMs / 2, ttlMs, 10 * ttlMs, 3_600_000));
  // The first client outlives all, so that there is somebody to wait for what the dead have left.
  add(
    "kill",
    2,
    () => 0,
    () => dice.whole(1, clients - 1),
  );
  return faults.toSorted((a, b) => a.atMs - b.atMs);
}
