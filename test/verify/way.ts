/**
 * A client's way to a store in the same process, with what networks do to calls: they arrive in order, are late or lost,
 * come twice, or their answers are lost. It stands in place of the proxies of `holdfast verify`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Backend, Browsable, Entry, NewEntry, Snapshot } from "../../src/core/backend.ts";
import { LockError } from "../../src/core/errors.ts";
import { echoMark } from "../../src/verify/live/stories/story.ts";
import type { Dice } from "../../src/verify/simulate/dice.ts";

/** How long a client waits for an answer. */
const deadlineMs = 250;

/** How far apart the echoes of a request are. */
const echoMs = 40;

/**
 * What a way is like. It stumbles in the calm opening: now and then a request comes twice at once, or its answer is lost and
 * it is made again. A store that takes it for one request gives exact answers all the same.
 */
export type Weather = "stumbling" | "fair" | "late" | "blackhole" | "drop-replies" | "repeat" | "dead";

/** A client's way to the store. */
export class Way {
  weather: Weather;
  readonly #dice: Dice;
  readonly #stumbled = new Set<string>();
  readonly #left = new Set<string>();
  /** When all calls before have arrived. */
  #arrived: Promise<unknown> = Promise.resolve();
  /** When those of this turn of the event loop arrive: they travel together. */
  #arriving: Promise<unknown> | null = null;

  constructor(dice: Dice, weather: Weather) {
    this.#dice = dice;
    this.weather = weather;
  }

  /** The backend as it is seen at the end of this way. */
  through(inner: Backend & Browsable): Backend & Browsable {
    const call = <T>(execute: () => Answer<T>): Promise<T> => this.#call(execute);
    const handOver: Backend["handOver"] = (queue, id, seq, heir) => {
      this.#left.add(id);
      return call(() => inner.handOver?.(queue, id, seq, heir) ?? false);
    };
    return {
      ...(inner.handOver === undefined ? {} : { handOver }),
      name: inner.name,
      traits: inner.traits,
      append: (queue, entry) => this.#append(inner, queue, entry),
      renew: (renewals) => call(() => inner.renew(renewals)),
      remove: (queue, id, evict, seq) => {
        if (evict !== true) this.#left.add(id);
        return call(() => inner.remove(queue, id, evict, seq));
      },
      list: (queue) => call(() => inner.list(queue)),
      queues: (prefix) => call(() => inner.queues(prefix)),
      watch: (queue, self, target, onChange) =>
        call(() =>
          inner.watch(queue, self, target, (fresh) => {
            if (this.#carriesHints) onChange(fresh === undefined ? undefined : writtenDown(fresh));
          }),
        ),
      // A hint, which may never come: whoever was evicted hears of it when it renews at the latest.
      onEvicted: (listener) =>
        inner.onEvicted?.((queue, id) => {
          if (this.#carriesHints && this.#dice.chance(0.5)) listener(queue, id);
        }),
      close: () => inner.close(),
    };
  }

  get #carriesHints(): boolean {
    return this.weather === "fair" || this.weather === "late" || this.weather === "stumbling";
  }

  #append(inner: Backend, queue: string, entry: NewEntry): Promise<Snapshot | null> {
    const execute = async (): Promise<Snapshot | null> => {
      const snapshot = await inner.append(queue, entry);
      return snapshot === null ? null : writtenDown(snapshot);
    };
    if (queue.includes(echoMark)) return this.#echoed(entry, execute);
    if (this.weather !== "stumbling" || this.#stumbled.has(entry.id)) return this.#call(execute);
    if (this.#dice.chance(0.1)) return this.#call(() => bothOf(execute));
    if (this.#dice.chance(0.9)) return this.#call(execute);
    this.#stumbled.add(entry.id);
    return this.#call(async () => {
      await execute();
      throw new LockError("LOCK_OUTCOME_UNKNOWN", "the connection was reset");
    });
  }

  /** A request that comes again and again for most of its entry's life, unless its owner has left. */
  async #echoed(entry: NewEntry, execute: () => Answer<Snapshot | null>): Promise<Snapshot | null> {
    const until = performance.now() + 0.8 * entry.ttlMs;
    const said = await this.#call(execute);
    if (said !== null) void this.#echo(entry.id, until, execute);
    return said;
  }

  async #echo(id: string, until: number, execute: () => Answer<unknown>): Promise<void> {
    for (;;) {
      await sleep(echoMs);
      if (performance.now() > until || this.#left.has(id) || this.weather !== "stumbling") return;
      await execute();
    }
  }

  async #call<T>(execute: () => Answer<T>): Promise<T> {
    const { weather } = this;
    const dice = this.#dice;
    await this.#arrival();
    if (weather === "dead") return new Promise(() => {});
    if (weather === "blackhole") return lateFailure();
    const answer = await execute();
    if (weather === "repeat") await execute();
    if (this.weather === "drop-replies") return lateFailure();
    await sleep(dice.between(0, 3));
    return answer;
  }

  /** Resolves when a call that is made now arrives: not before those that were made earlier. */
  #arrival(): Promise<unknown> {
    if (this.#arriving === null) {
      const dice = this.#dice;
      const delayMs = this.weather === "late" ? dice.between(0, deadlineMs) : dice.between(0, 3);
      this.#arriving = Promise.all([this.#arrived, sleep(delayMs)]);
      this.#arrived = this.#arriving;
      setImmediate(() => {
        this.#arriving = null;
      });
    }
    return this.#arriving;
  }
}

/**
 * What a network carries: how long an entry has left is what the store said, not what it would say when the answer is read.
 * Otherwise the way back would be taken from its life, and whoever counts from its request takes it once more.
 */
function writtenDown({ self, ahead }: Snapshot): Snapshot {
  const { nearest, nearestWriter } = ahead;
  return {
    self: entryOf(self),
    ahead: {
      ...ahead,
      nearest: nearest === null ? null : entryOf(nearest),
      nearestWriter: nearestWriter === null ? null : entryOf(nearestWriter),
    },
  };
}

/** Its properties one by one: in memory they are computed when they are asked for. */
function entryOf(entry: Entry): Entry {
  const { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata } = entry;
  return { id, owner, mode, weight, permits, seq, expiresInMs, ageMs, metadata };
}

async function bothOf<T>(execute: () => Answer<T>): Promise<T> {
  const [answer] = await Promise.all([execute(), execute()]);
  return answer;
}

async function lateFailure(): Promise<never> {
  await sleep(deadlineMs);
  throw new LockError("LOCK_OUTCOME_UNKNOWN", "the way to the store is broken");
}
