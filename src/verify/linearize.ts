/**
 * A search for one order in which calls that overlapped could have happened one after the other (Wing and Gong's
 * algorithm, with Lowe's cache of visited configurations). Knows nothing of locks: the model says what may happen.
 */

/** What is asked of the search: a state machine whose states can be told apart by text. */
export interface Model<State, Op> {
  readonly initial: State;
  /** The state after op, or null where op cannot happen or cannot have been answered as it was. Changes nothing. */
  step(state: State, op: Op): State | null;
  /** A text that two states share only if they are equal. */
  key(state: State): string;
}

/** Something that happens at one moment between call and end. */
export interface TimedOp<Op> {
  readonly op: Op;
  readonly call: number;
  readonly end: number;
  /** It may never have happened. An op without an end is always optional. */
  readonly optional?: boolean;
}

/** How a search ended. */
export interface Linearization<Op> {
  /** `unknown`: the limit of steps was reached before an answer was. */
  readonly verdict: "valid" | "invalid" | "unknown";
  /** Where valid: an order that explains everything. Otherwise: one with as many required ops as were ever fitted in. */
  readonly order: readonly TimedOp<Op>[];
  /** Where not valid: the first op to end of those that this order leaves out. */
  readonly stuck: TimedOp<Op> | null;
  readonly steps: number;
}

/**
 * Looks for an order of all ops that are not optional, and of any that are, in which each is a step of the model and none
 * comes before another that ended before it was called.
 */
export function linearize<State, Op>(
  model: Model<State, Op>,
  ops: readonly TimedOp<Op>[],
  limit = 1_000_000,
): Linearization<Op> {
  return new Search(model, ops).run(limit);
}

interface Slot<Op> {
  readonly timed: TimedOp<Op>;
  /** Its place among the required ops, or among the optional ones. */
  readonly at: number;
  readonly required: boolean;
  done: boolean;
}

/** A configuration on the way, with what may come next and how much of that was tried. */
interface Frame<State, Op> {
  readonly state: State;
  readonly candidates: readonly Slot<Op>[];
  tried: number;
  /** The latest call on the way here: what ended before it can no longer happen. */
  readonly latest: number;
  /** The op that led here; null at the start. */
  readonly by: Slot<Op> | null;
}

class Search<State, Op> {
  readonly #model: Model<State, Op>;
  readonly #required: readonly Slot<Op>[];
  readonly #optional: readonly Slot<Op>[];
  readonly #visited = new Set<string>();
  readonly #stack: Frame<State, Op>[] = [];
  /** All required ops before this one are done. */
  #low = 0;
  /** How many required ops are done, and how many were at best. */
  #done = 0;
  #furthest = -1;
  #longest: readonly TimedOp<Op>[] = [];
  #stuck: TimedOp<Op> | null = null;

  constructor(model: Model<State, Op>, ops: readonly TimedOp<Op>[]) {
    this.#model = model;
    const sorted = ops.toSorted((a, b) => a.call - b.call);
    const slots = (required: boolean): Slot<Op>[] =>
      sorted
        .filter(({ end, optional }) => (end !== Infinity && optional !== true) === required)
        .map((timed, at) => ({ timed, at, required, done: false }));
    this.#required = slots(true);
    this.#optional = slots(false);
  }

  run(limit: number): Linearization<Op> {
    let steps = 0;
    this.#push(this.#model.initial, null);
    for (let frame = this.#stack.at(-1); frame !== undefined; frame = this.#stack.at(-1)) {
      if (this.#low === this.#required.length) {
        return { verdict: "valid", order: this.#path(), stuck: null, steps };
      }
      const slot = frame.candidates[frame.tried];
      frame.tried += 1;
      if (slot === undefined) {
        this.#back(frame);
        continue;
      }
      steps += 1;
      if (steps > limit) {
        this.#note();
        return { verdict: "unknown", order: this.#longest, stuck: this.#stuck, steps };
      }
      const state = this.#model.step(frame.state, slot.timed.op);
      if (state !== null) this.#advance(state, slot);
    }
    return { verdict: "invalid", order: this.#longest, stuck: this.#stuck, steps };
  }

  #advance(state: State, slot: Slot<Op>): void {
    slot.done = true;
    if (slot.required) this.#done += 1;
    while (this.#required[this.#low]?.done === true) this.#low += 1;
    const configuration = this.#configuration(state);
    if (this.#visited.has(configuration)) {
      this.#undo(slot);
      return;
    }
    this.#visited.add(configuration);
    this.#push(state, slot);
  }

  #push(state: State, by: Slot<Op> | null): void {
    const latest = Math.max(this.#stack.at(-1)?.latest ?? -Infinity, by?.timed.call ?? -Infinity);
    this.#stack.push({ state, candidates: this.#next(latest), tried: 0, latest, by });
  }

  #back({ by }: Frame<State, Op>): void {
    this.#note();
    this.#stack.pop();
    if (by !== null) this.#undo(by);
  }

  #undo(slot: Slot<Op>): void {
    slot.done = false;
    if (!slot.required) return;
    this.#done -= 1;
    this.#low = Math.min(this.#low, slot.at);
  }

  /** What may come next: called before any op that is still to come has ended. First the required, by their end. */
  #next(latest: number): readonly Slot<Op>[] {
    const near: Slot<Op>[] = [];
    let horizon = Infinity;
    for (let at = this.#low; at < this.#required.length; at += 1) {
      const slot = this.#required[at];
      if (slot === undefined || slot.timed.call > horizon) break;
      if (slot.done) continue;
      near.push(slot);
      horizon = Math.min(horizon, slot.timed.end);
    }
    const ready = near.filter(({ timed }) => timed.call <= horizon);
    if (ready.length > 1) ready.sort((a, b) => a.timed.end - b.timed.end);
    for (const slot of this.#optional) {
      if (slot.timed.call > horizon) break;
      if (!slot.done && slot.timed.end >= latest) ready.push(slot);
    }
    return ready;
  }

  /** Which ops are done, and the state. What is done beyond `low` was called before `low` ended, so the list is short. */
  #configuration(state: State): string {
    let text = `${this.#low}`;
    const horizon = this.#required[this.#low]?.timed.end ?? 0;
    for (let at = this.#low + 1; at < this.#required.length; at += 1) {
      const slot = this.#required[at];
      if (slot === undefined || slot.timed.call > horizon) break;
      if (slot.done) text += `,${at}`;
    }
    for (const slot of this.#optional) if (slot.done) text += `;${slot.at}`;
    return `${text}|${this.#model.key(state)}`;
  }

  /** Keeps the way that got furthest so far. */
  #note(): void {
    if (this.#done <= this.#furthest) return;
    this.#furthest = this.#done;
    this.#longest = this.#path();
    let first: TimedOp<Op> | null = null;
    for (const { timed, done } of this.#required) {
      if (!done && (first === null || timed.end < first.end)) first = timed;
    }
    this.#stuck = first;
  }

  #path(): TimedOp<Op>[] {
    return this.#stack.flatMap(({ by }) => (by === null ? [] : [by.timed]));
  }
}
