/**
 * The waiters of one client and who tells them: the database if it can, otherwise looks, of all waiters in one query, often
 * only for those who are next. What a waiter makes of it is left to the core.
 */
import type { Entry, Snapshot } from "../core/backend.ts";
import { systemClock, type Timer } from "../core/clock.ts";
import { ruleOf } from "../core/grant.ts";
import { isPlace, type Place, snapshotOf } from "./wire.ts";

/** How long after a look those look again who are not next, and whose queue stands still, in milliseconds. */
const farMs = 600;

/** The shortest and the longest time between looks of those who are next, in milliseconds. */
const nearMs = { shortest: 1, longest: 100 };

/** How many wake-ups are kept for waiters that have not said yet that they wait. */
const keptWakes = 1000;

/** Asks the database where an entry stands: a place, or null if it is not there. */
export type Look = (queue: string, seq: bigint) => Promise<unknown>;

class Watch {
  readonly queue: string;
  readonly self: Entry;
  readonly onChange: (fresh?: Snapshot) => void;
  /** When it was last seen to have come nearer, and how many were ahead then. */
  movedAt: number = systemClock.now();
  ahead = Number.POSITIVE_INFINITY;
  lookAt = 0;
  looking = false;
  told = false;

  constructor(queue: string, self: Entry, onChange: (fresh?: Snapshot) => void) {
    this.queue = queue;
    this.self = self;
    this.onChange = onChange;
  }
}

/** All that wait through one client. */
export class Lookout {
  readonly #look: Look;
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #early = new Map<string, Place | null>();
  /** Entries of waiters that a look has not found any more. */
  readonly #gone = new Set<string>();
  /** Entries that joined while the database told this client all that concerns them: since which time without a break. */
  readonly #told = new WeakMap<Entry, number>();
  #pushed = false;
  /** Counts the times at which telling began or ended. */
  #epoch = 0;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(look: Look) {
    this.#look = look;
  }

  /** Whether anybody waits. */
  get busy(): boolean {
    return this.#watches.size > 0;
  }

  /** The time without a break in which the database tells this client; null while it does not. */
  get epoch(): number | null {
    return this.#pushed ? this.#epoch : null;
  }

  /** Remembers that an entry joined in a time in which all that concerns it is told: it need not look first. */
  trust(self: Entry, epoch: number): void {
    this.#told.set(self, epoch);
  }

  /** Says whether the database tells waiters from now on. In either case all look once: what was told before may be lost. */
  setPushed(pushed: boolean): void {
    this.#pushed = pushed;
    this.#epoch += 1;
    for (const watch of this.#all()) watch.lookAt = 0;
    this.#lookBy(0);
  }

  /** Adds a waiter; it looks at once if its target may have left without a word. Gives the function that takes it off again. */
  watch(queue: string, self: Entry, onChange: (fresh?: Snapshot) => void): () => void {
    const watch = new Watch(queue, self, onChange);
    const those = this.#watches.get(self.id) ?? new Set();
    this.#watches.set(self.id, those.add(watch));
    const early = this.#early.get(self.id);
    if (this.#pushed && this.#told.get(self) === this.#epoch) watch.lookAt = Number.POSITIVE_INFINITY;
    if (early !== undefined && concerns(early, self)) {
      this.#early.delete(self.id);
      this.#tell(watch, early);
    } else {
      this.#lookBy(watch.lookAt);
    }
    return () => {
      those.delete(watch);
      if (those.size === 0 && this.#watches.get(self.id) === those) this.#watches.delete(self.id);
    };
  }

  /** The database says that an entry may hold now, and maybe where it stands. Whoever has joined again may still watch for what it was before. */
  wake(id: string, place: unknown): void {
    const known = isPlace(place) ? place : null;
    const those = [...(this.#watches.get(id) ?? [])].filter((watch) => concerns(known, watch.self));
    for (const watch of those) this.#tell(watch, known);
    if (known === null || those.length === 0) this.#keep(id, known);
  }

  /** An entry of a queue has left, as this client knows: those of its waiters look at once who may be next. */
  nudge(queue: string): void {
    if (this.#pushed) return;
    const those = [...this.#all()].filter((watch) => watch.queue === queue);
    const first = those.reduce<Watch | null>(
      (least, each) => (least && least.self.seq < each.self.seq ? least : each),
      null,
    );
    for (const watch of those) {
      const alone = watch.self.mode === "write" && watch.self.permits === undefined;
      if (watch === first || !alone) watch.lookAt = 0;
    }
    if (first !== null) this.#lookBy(0);
  }

  /** Whether a look has not found an entry any more: asked once, when it joins again. */
  foundGone(id: string): boolean {
    return this.#gone.delete(id);
  }

  /** Forgets what was kept for an entry that has left. */
  forget(id: string): void {
    this.#early.delete(id);
    this.#gone.delete(id);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#watches.clear();
    this.#early.clear();
    this.#gone.clear();
  }

  *#all(): Generator<Watch, void> {
    for (const those of this.#watches.values()) yield* those;
  }

  /** A wake-up may overtake the answer to the append: it is kept until the waiter says that it waits. */
  #keep(id: string, place: Place | null): void {
    this.#early.set(id, place);
    if (this.#early.size <= keptWakes) return;
    const [oldest] = this.#early.keys();
    if (oldest !== undefined) this.#early.delete(oldest);
  }

  #tell(watch: Watch, place: Place | null): void {
    if (this.#closed || !this.#watches.get(watch.self.id)?.has(watch)) return;
    watch.told = true;
    watch.onChange(place === null ? undefined : snapshotOf(watch.self, place));
  }

  /** Sees to it that somebody looks at this moment, or before. */
  #lookBy(at: number): void {
    if (this.#closed || at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = systemClock.after(at - systemClock.now(), () => this.#lookNow());
  }

  #lookNow(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    // Those who are about to look come along: they travel in one query.
    const due = systemClock.now() + nearMs.shortest / 2;
    for (const watch of this.#all()) {
      if (watch.told || watch.looking) continue;
      if (watch.lookAt > due) next = Math.min(next, watch.lookAt);
      else this.#begin(watch);
    }
    this.#lookBy(next);
  }

  #begin(watch: Watch): void {
    watch.looking = true;
    void this.#lookFor(watch).finally(() => {
      watch.looking = false;
      if (!watch.told) this.#lookBy(watch.lookAt);
    });
  }

  async #lookFor(watch: Watch): Promise<void> {
    const { queue, self } = watch;
    const epoch = this.#epoch;
    try {
      const place = await this.#look(queue, self.seq);
      const now = systemClock.now();
      // It was taken out, or has expired: then it must not hear that it may hold.
      if (!isLive(place)) return await this.#tellGone(watch);
      const { ahead } = snapshotOf(self, place);
      if (ruleOf(self).grants(self, ahead)) return this.#tell(watch, place);
      // What has expired is taken out by an append, under the queue's lock.
      if (ahead.nearest?.expiresInMs === 0) return this.#tell(watch, null);
      // What was seen before telling began says nothing about what was not told.
      watch.lookAt = epoch === this.#epoch ? now + this.#pauseFor(watch, place, now) : 0;
    } catch {
      watch.lookAt = systemClock.now() + farMs;
    }
  }

  /** Tells a waiter that its entry is gone, after those ahead of it of which the same is true: they join again in this order. */
  async #tellGone(watch: Watch): Promise<void> {
    const { queue, self } = watch;
    const ahead = [...this.#all()]
      .filter((each) => each.queue === queue && each.self.seq < self.seq && !each.told)
      .toSorted((one, other) => (one.self.seq < other.self.seq ? -1 : 1));
    const places = await Promise.allSettled(ahead.map((each) => this.#look(queue, each.self.seq)));
    const gone = ahead.filter((_each, index) => {
      const answer = places[index];
      return answer?.status === "fulfilled" && !isLive(answer.value);
    });
    for (const each of [...gone, watch]) {
      if (this.#watches.get(each.self.id)?.has(each)) this.#gone.add(each.self.id);
      this.#tell(each, null);
    }
  }

  /** Next look: those who are next soon, and those behind when they might have become next, by the pace of the queue. */
  #pauseFor(watch: Watch, place: Place, now: number): number {
    if (this.#pushed) return Number.POSITIVE_INFINITY;
    const [, , , count] = place;
    const sinceMs = Math.max(1, now - watch.movedAt);
    const steps = Number.isFinite(watch.ahead) ? watch.ahead - count : 0;
    if (count < watch.ahead) {
      watch.ahead = count;
      watch.movedAt = now;
    }
    // The longer it has stood, the less a few milliseconds more matter.
    if (isNext(watch.self, place))
      return Math.min(nearMs.longest, Math.max(nearMs.shortest, (now - watch.movedAt) / 10));
    const paceMs = steps > 0 ? sinceMs / steps : sinceMs;
    return (
      Math.min(farMs, Math.max(2 * nearMs.shortest, (paceMs * (count - 1)) / 2)) *
      (0.85 + 0.3 * Math.random())
    );
  }
}

/** Whether a look has found an entry that lives. */
function isLive(place: unknown): place is Place {
  return isPlace(place) && place[1] > 0;
}

/** Whether a wake-up is for this entry: the place that came along is its own. */
function concerns(place: Place | null, self: Entry): boolean {
  return place === null || BigInt(place[0]) === self.seq;
}

/** Whether those who are ahead hold: then it is next. */
function isNext(self: Entry, [, , , count, weight, , writer, firstSeq]: Place): boolean {
  if (self.permits !== undefined) return weight <= self.permits;
  if (self.mode === "write") return count === 1 || writer === null;
  return writer === true ? count === 1 : writer !== null && writer[4] === firstSeq;
}
