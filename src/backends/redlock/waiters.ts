/**
 * Those of one client who wait for locks: in a line for each lock, of which only the first asks the nodes. When to ask
 * again is decided here: at a hint, after a release of our own, or after a back-off that grows and is never the same.
 */
import type { Clock, Random, Timer } from "../../core/clock.ts";
import type { Hints } from "./hints.ts";
import type { Holder } from "./holder.ts";

/** The first back-off while somebody holds, and the longest, in milliseconds: hints make it shorter. */
const [firstMs, longestMs] = [20, 250];

/** The first back-off after several have tried at once and none has won, or while a release is on its way, in milliseconds. */
const splitMs = 1;

/** How often in a row a release is followed at once by a request of the same client; then others get a chance. */
const longestRun = 16;

/** How long others get it for, in milliseconds. */
const chanceMs = 5;

interface Waiter {
  readonly id: string;
  readonly line: Line;
  /** How often it found the same holder. */
  tries: number;
  /** How often in a row it found that several had tried at once. */
  collisions: number;
  /** A hint came while it was asking. */
  hinted: boolean;
  onChange: (() => void) | null;
  timer: Timer | null;
}

interface Line {
  readonly key: string;
  readonly waiters: Waiter[];
  holder: Holder | null;
  /** Who was last told to be gone: some nodes may hear of it later than we do. */
  gone: string | null;
  run: number;
  /** Releases of our own that will be told to us, too. */
  readonly echoes: Set<string>;
}

/** The waiters of one client. */
export class Waiters {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #hints: Hints;
  readonly #lines = new Map<string, Line>();
  readonly #waiters = new Map<string, Waiter>();

  constructor(clock: Clock, random: Random, hints: Hints) {
    this.#clock = clock;
    this.#random = random;
    this.#hints = hints;
  }

  has(id: string): boolean {
    return this.#waiters.has(id);
  }

  /** Whether others of this client wait for a lock already. */
  isQueue(key: string): boolean {
    return this.#lines.has(key);
  }

  /** How many stand in front of a waiter, and who is known to hold. */
  ahead(id: string): { readonly count: number; readonly holder: Holder | null } {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) return { count: 0, holder: null };
    const { waiters, holder } = waiter.line;
    return { count: waiters.indexOf(waiter) + 1, holder };
  }

  /** Joins the end of the line. */
  join(key: string, id: string): void {
    if (this.#waiters.has(id)) return;
    const line = this.#lines.get(key) ?? {
      key,
      waiters: [],
      holder: null,
      gone: null,
      run: 0,
      echoes: new Set<string>(),
    };
    const waiter: Waiter = { id, line, tries: 0, collisions: 0, hinted: false, onChange: null, timer: null };
    line.waiters.push(waiter);
    this.#waiters.set(id, waiter);
    this.#lines.set(key, line);
  }

  /** A waiter asks now: what it was told before is used up. */
  asks(id: string): void {
    const waiter = this.#waiters.get(id);
    if (waiter !== undefined) waiter.hinted = false;
  }

  /** A waiter has asked in vain; a holder, if there is one, is known now. */
  busy(id: string, holder: Holder | null): void {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) return;
    const { line } = waiter;
    if (holder === null || holder.held.id === line.gone) {
      waiter.collisions += 1;
      return;
    }
    waiter.collisions = 0;
    waiter.tries = line.holder?.held.id === holder.held.id ? waiter.tries + 1 : 0;
    line.holder = holder;
    line.run = 0;
  }

  /** Tells a waiter when to ask again, until the function that is given is called. */
  watch(id: string, onChange: () => void): () => void {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) return () => {};
    waiter.onChange = onChange;
    if (waiter.hinted) this.#later(waiter, 0);
    else if (waiter.line.waiters[0] === waiter) this.#arm(waiter);
    return () => {
      if (waiter.onChange === onChange) waiter.onChange = null;
      waiter.timer?.cancel();
      waiter.timer = null;
    };
  }

  /** Only the first of a line is on the watch. */
  #arm(waiter: Waiter): void {
    this.#hints.want(waiter.line.key, "waiting");
    if (waiter.onChange === null || waiter.timer !== null) return;
    const { tries, collisions } = waiter;
    const backOffMs =
      collisions > 0 ? splitMs * 2 ** Math.min(collisions, 8) : firstMs * 2 ** Math.min(tries, 8);
    this.#later(waiter, Math.min(backOffMs, longestMs) * (0.25 + this.#random()));
  }

  #later(waiter: Waiter, ms: number): void {
    waiter.timer?.cancel();
    waiter.timer = this.#clock.after(ms, () => this.#tell(waiter));
  }

  #tell(waiter: Waiter): void {
    waiter.timer?.cancel();
    waiter.timer = null;
    if (waiter.onChange === null) waiter.hinted = true;
    else waiter.onChange();
  }

  /** Somebody has released a lock, or may have: the first of its line asks. */
  hint(key: string, id: string | null): void {
    const line = this.#lines.get(key);
    const [first] = line?.waiters ?? [];
    if (line === undefined || first === undefined || (id !== null && line.echoes.delete(id))) return;
    line.gone = id ?? line.gone;
    this.#tell(first);
  }

  /** A lock of this client is being released: the first of its line asks with the same message. */
  released(key: string, id: string): void {
    const line = this.#lines.get(key);
    const [first] = line?.waiters ?? [];
    if (line === undefined || first === undefined) return;
    line.echoes.add(id);
    line.run += 1;
    if (line.run <= longestRun) return this.#tell(first);
    line.run = 0;
    this.#later(first, chanceMs * (0.5 + this.#random()));
  }

  /** Leaves the line: granted, or given up. True if it was in one. */
  leave(id: string): boolean {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) return false;
    const { line } = waiter;
    waiter.timer?.cancel();
    waiter.onChange = null;
    this.#waiters.delete(id);
    line.waiters.splice(line.waiters.indexOf(waiter), 1);
    const [first] = line.waiters;
    if (first !== undefined) this.#arm(first);
    else {
      this.#lines.delete(line.key);
      this.#hints.unwant(line.key, "waiting");
    }
    return true;
  }

  close(): void {
    for (const { timer } of this.#waiters.values()) timer?.cancel();
    this.#waiters.clear();
    this.#lines.clear();
  }
}
