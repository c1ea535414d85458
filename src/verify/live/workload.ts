/**
 * What the users of one client do, by its dice: which locks they ask for, how, what they write while they hold, and when
 * they give up. Before the faults begin, locks of their own show whether answers about state are exact.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../../core/lock.ts";
import type { LockManager } from "../../core/manager.ts";
import type { LockMode } from "../../core/options.ts";
import type { Dice } from "../simulate/dice.ts";
import { lookAtQueue } from "./listing.ts";
import type { Handle, Observer } from "./observer.ts";
import type { Resource } from "./resource.ts";

/** What a client is given. */
export interface Workload {
  readonly locks: LockManager;
  readonly observer: Observer;
  readonly dice: Dice;
  readonly fenced: Resource;
  readonly unfenced: Resource;
  /** What all lock names start with. */
  readonly prefix: string;
  readonly ttlMs: number;
  /** Until when, on the clock of the history, only locks of the calm opening are used. */
  readonly calmUntil: bigint;
  /** How many things it does at the same time. */
  readonly lanes: number;
}

const permits = 3;
const permitsMark = ", permits";

/** The part of the name that locks of the calm opening have. */
export const calmMark = "calm/";

/** So many ttls long are those of the calm opening: whoever is not woken there waits for so long that it shows. */
const calmTtls = 4;

/** How long anybody may wait in the calm opening, in ttls: the holders before it are short. */
export const calmWaitTtls = 2;

/** Names that a careless store takes for one: each pair is used together, so that one is busy while the other is free. */
const confusable: readonly (readonly [string, string])[] = [
  ["q", "Q"],
  ["é", "e\u0301"],
  ["ä", "ö"],
  ["s", "s "],
  ["p", "p/"],
  [":1", ":2"],
  ["1", "12"],
  ["*", "_"],
  [`${"x".repeat(200)}1`, `${"x".repeat(200)}2`],
];

/** A name for each stretch of the calm opening, so that the search for an order of what happened stays small. */
const calmStretchNs = 400_000_000n;

/** The users of one client, until they are told to stop. */
export class Users {
  readonly #load: Workload;
  #stopped = false;

  constructor(load: Workload) {
    this.#load = load;
  }

  /** Asks for nothing new; resolves in `run` when all have ended. */
  stop(): void {
    this.#stopped = true;
  }

  async run(): Promise<void> {
    const looking = setInterval(() => this.#load.observer.look(), 20);
    await Promise.all(Array.from({ length: this.#load.lanes }, () => this.#use()));
    clearInterval(looking);
  }

  async #use(): Promise<void> {
    const { dice, ttlMs } = this.#load;
    while (!this.#stopped) {
      await sleep(dice.between(0, ttlMs * 0.05));
      await (this.#isCalm() ? this.#operateCalmly() : this.#operate());
    }
  }

  #isCalm(): boolean {
    return process.hrtime.bigint() < this.#load.calmUntil;
  }

  #operate(): Promise<void> {
    const { dice, locks, prefix } = this.#load;
    const { shared, counted } = locks.traits;
    const name = `${prefix}${dice.pick("a", "b")}`;
    const mode: LockMode = shared && dice.chance(0.2) ? "shared" : "exclusive";
    const draw = dice.fraction();
    if (draw < 0.4) return this.#section(name, mode);
    if (draw < 0.7) return this.#acquire(name, mode);
    if (draw < 0.82) return this.#try(name, mode);
    if (draw < 0.92 && counted) return this.#takePermits(`${prefix}a`);
    return this.#acquireBoth([`${prefix}a`, `${prefix}b`]);
  }

  #operateCalmly(): Promise<void> {
    const { dice, locks, prefix } = this.#load;
    const { shared, counted } = locks.traits;
    const stretch = process.hrtime.bigint() / calmStretchNs;
    const pair = confusable[Number(stretch % BigInt(confusable.length))] ?? ["", ""];
    const name = `${prefix}${calmMark}${stretch}${dice.pick(...pair)}`;
    const mode: LockMode = shared && dice.chance(0.4) ? "shared" : "exclusive";
    const metadata = dice.chance(0.5) ? `${dice.whole(0, 9)}`.repeat(dice.pick(1, 100, 4000)) : undefined;
    const draw = dice.fraction();
    if (draw < 0.3) return this.#acquire(name, mode, metadata);
    if (draw < 0.6) return this.#try(name, mode);
    if (draw < 0.75) return counted ? this.#takePermits(name) : this.#acquire(name, mode);
    // Not more of them: each makes the search for an order of what happened longer.
    return lookAtQueue(this.#load.locks, this.#load.observer, name);
  }

  /** `request`: the release is the library's, and a loss is told when the callback has ended. */
  async #section(name: string, mode: LockMode): Promise<void> {
    const { locks, observer } = this.#load;
    const { wait, ttl } = this.#patience();
    const attempt = observer.ask("acquire", name, { mode, ttl });
    const passage: { handle: Handle | null } = { handle: null };
    let failed: unknown = null;
    try {
      await locks.request(name, { mode, ttl, wait }, async (lock) => {
        passage.handle = observer.granted("acquire", attempt, lock);
        await this.#work(passage.handle);
        observer.leaves(passage.handle);
      });
    } catch (error) {
      failed = error;
    }
    if (passage.handle === null) return observer.refused("acquire", attempt, failed);
    if (failed !== null) observer.explain(failed);
    observer.left(passage.handle, "unknown");
  }

  async #acquire(name: string, mode: LockMode, metadata?: string): Promise<void> {
    const { locks, observer } = this.#load;
    const { wait, ttl } = this.#patience();
    const attempt = observer.ask("acquire", name, { mode, ttl });
    await this.#hold("acquire", attempt, locks.acquire(name, { mode, ttl, wait, metadata }), metadata);
  }

  async #try(name: string, mode: LockMode): Promise<void> {
    const { locks, observer, ttlMs } = this.#load;
    const attempt = observer.ask("try", name, { mode, ttl: ttlMs });
    await this.#hold("try", attempt, locks.tryAcquire(name, { mode, ttl: ttlMs }));
  }

  async #takePermits(name: string): Promise<void> {
    const { locks, observer, dice, ttlMs } = this.#load;
    const weight = dice.whole(1, 2);
    const semaphore = locks.semaphore(name, permits);
    // A lock of the same name is another thing.
    const recorded = `${name}${permitsMark}`;
    if (dice.chance(0.4)) {
      const attempt = observer.ask("try", recorded, { weight, permits, ttl: ttlMs });
      return this.#hold("try", attempt, semaphore.tryAcquire({ weight, ttl: ttlMs }), undefined, true);
    }
    const { wait, ttl } = this.#patience();
    const attempt = observer.ask("acquire", recorded, { weight, permits, ttl });
    return this.#hold("acquire", attempt, semaphore.acquire({ weight, ttl, wait }), undefined, true);
  }

  async #hold(
    f: "acquire" | "try",
    attempt: string,
    asked: Promise<Lock | null>,
    metadata?: string,
    counted = false,
  ): Promise<void> {
    const { observer } = this.#load;
    let lock: Lock | null;
    try {
      lock = await asked;
    } catch (error) {
      return observer.refused(f, attempt, error);
    }
    if (lock === null) return observer.busy(attempt);
    const handle = observer.granted(f, attempt, lock, metadata);
    await this.#work(handle, counted);
    await this.#release([handle], () => handle.lock.release());
  }

  /** Two names at once: all or nothing. */
  async #acquireBoth(names: readonly string[]): Promise<void> {
    const { locks, observer } = this.#load;
    const { wait, ttl } = this.#patience();
    const attempts = names.map((name) => observer.ask("acquire", name, { ttl }));
    const asked = locks.acquire(names, { ttl, wait });
    const set = await asked.catch((error: unknown) => {
      for (const attempt of attempts) observer.refused("acquire", attempt, error);
      return null;
    });
    if (set === null) return;
    const handles = set.locks.map((lock, at) => observer.granted("acquire", attempts[at] ?? "", lock));
    for (const handle of handles) await this.#work(handle);
    await this.#release(handles, () => set.release());
  }

  async #release(handles: readonly Handle[], call: () => Promise<"released" | "gone">): Promise<void> {
    const { observer } = this.#load;
    for (const handle of handles) observer.leaves(handle);
    let outcome: "released" | "gone" | "unknown";
    try {
      outcome = await call();
      // Of several, one that is gone does not say which.
      if (outcome === "gone" && handles.length > 1) outcome = "unknown";
    } catch (error) {
      observer.explain(error);
      outcome = "unknown";
    }
    for (const handle of handles) observer.left(handle, outcome);
  }

  #patience(): { wait: number | undefined; ttl: number } {
    const { dice, ttlMs } = this.#load;
    if (this.#isCalm()) return { wait: undefined, ttl: calmTtls * ttlMs };
    const wait = dice.chance(0.25) ? dice.between(0, 3 * ttlMs) : undefined;
    return { wait, ttl: ttlMs };
  }

  /**
   * Reads where the logs end, works for a while, and writes there: what two at once would do wrong. Some users stop when
   * they see that the lock is lost; others go on, and the fence has to stop them.
   */
  async #work(handle: Handle, counted = false): Promise<void> {
    const { dice, ttlMs, observer, fenced, unfenced } = this.#load;
    const { name, lock } = handle;
    if (name.includes(calmMark)) return sleep(dice.between(0, 40));
    const exclusive = lock.mode === "exclusive" && !counted;
    const heedful = dice.chance(0.6);
    const places = exclusive
      ? await Promise.all([fenced.read(name, lock.token), unfenced.read(name, lock.token)])
      : [];
    await sleep(dice.between(0, ttlMs * dice.pick(0.02, 0.05, 0.1, 0.5)));
    if (!observer.seesHeld(handle) && heedful) return;
    await this.#writeFenced(handle, places[0]);
    await this.#writeUnfenced(handle, places[1]);
    observer.seesHeld(handle);
  }

  async #writeFenced(handle: Handle, at: number | null | undefined): Promise<void> {
    const { observer, fenced } = this.#load;
    if (at === undefined || at === null) return;
    const { name, attempt, lock } = handle;
    const { token } = lock;
    const value = this.#nextValue();
    const about = { f: "write", resource: name, attempt, value, token } as const;
    observer.record({ ...about, type: "invoke" });
    const accepted = await fenced.write({ name, token, attempt, at, value });
    observer.record({ ...about, type: accepted === undefined ? "info" : accepted ? "ok" : "fail" });
  }

  /** Without the fence a write may be undone as soon as anything goes wrong: it is counted, but it is no claim. */
  async #writeUnfenced(handle: Handle, at: number | null | undefined): Promise<void> {
    if (at === undefined || at === null) return;
    const { name, attempt, lock } = handle;
    await this.#load.unfenced.write({ name, token: lock.token, attempt, at, value: this.#nextValue() });
  }

  #nextValue(): string {
    const { observer } = this.#load;
    return `${observer.proc}:${observer.next()}`;
  }
}
