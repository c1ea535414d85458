/**
 * A search for one order in which calls that overlapped could have happened one after the other (Wing and Gong's
 * algorithm, with Lowe's cache of visited configurations). Knows nothing of locks: the model says what may happen.
 */

/** What is asked of the search: a state machine whose states can be told apart by text. */
export interface Model<State, Op> {
  readonly initial: State;
  /**
   * The states in which op may leave: none where it cannot happen, or cannot have been answered as it was; the very same
   * object where it changes nothing. Hidden steps may come before it, if they are possible before the moment `horizon`.
   */
  step(state: State, op: Op, horizon: number): readonly State[];
  /** A text that two states share only if they are equal. */
  key(state: State): string;
}

/** Something that happens at one moment between call and end. */
export interface TimedOp<Op> {
  readonly op: Op;
  readonly call: number;
  /** Infinity: it was never answered, and may have happened at any time from call on, or never. */
  readonly end: number;
  /** An op that is known to come before this one. */
  readonly after?: TimedOp<Op> | undefined;
}

/** How a search ended. */
export interface Linearization<Op> {
  /** `unknown`: the limit of steps was reached before an answer was. */
  readonly verdict: "valid" | "invalid" | "unknown";
  /** Where valid: an order that explains everything. Otherwise: one that explains as much as was ever explained. */
  readonly order: readonly TimedOp<Op>[];
  /** Where not valid: the first op to end of those that this order leaves out. */
  readonly stuck: TimedOp<Op> | null;
  readonly steps: number;
}

/**
 * Looks for an order of all ops that ended, and of any that did not, in which each is a step of the model and none
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
  /** Its place among the ops that ended, or among those that did not. */
  readonly at: number;
  readonly ended: boolean;
  after: Slot<Op> | undefined;
  done: boolean;
}

/** A configuration on the way: what may come next, and how much of that was tried. */
interface Frame<State, Op> {
  readonly moves: readonly (readonly [Slot<Op>, State])[];
  tried: number;
  /** The op that led here; null at the start. */
  readonly by: Slot<Op> | null;
}

class Search<State, Op> {
  readonly #model: Model<State, Op>;
  readonly #ended: readonly Slot<Op>[];
  readonly #open: readonly Slot<Op>[];
  readonly #visited = new Set<string>();
  readonly #stack: Frame<State, Op>[] = [];
  /** All ended ops before this one are done. */
  #low = 0;
  /** How many ended ops are done, and how many were at best. */
  #done = 0;
  #furthest = -1;
  #longest: readonly TimedOp<Op>[] = [];
  #stuck: TimedOp<Op> | null = null;
  #steps = 0;

  constructor(model: Model<State, Op>, ops: readonly TimedOp<Op>[]) {
    this.#model = model;
    const sorted = ops.toSorted((a, b) => a.call - b.call);
    const slots = (ended: boolean): Slot<Op>[] =>
      sorted
        .filter(({ end }) => (end !== Infinity) === ended)
        .map((timed, at) => ({ timed, at, ended, after: undefined, done: false }));
    this.#ended = slots(true);
    this.#open = slots(false);
    const all = [...this.#ended, ...this.#open];
    const slotOf = new Map(all.map((slot) => [slot.timed, slot]));
    for (const slot of all) slot.after = slot.timed.after && slotOf.get(slot.timed.after);
  }

  run(limit: number): Linearization<Op> {
    this.#push(this.#model.initial, null);
    for (let frame = this.#stack.at(-1); frame !== undefined; frame = this.#stack.at(-1)) {
      if (this.#low === this.#ended.length) {
        return { verdict: "valid", order: this.#path(), stuck: null, steps: this.#steps };
      }
      const move = frame.moves[frame.tried];
      frame.tried += 1;
      if (move === undefined) {
        this.#back(frame);
        continue;
      }
      if (this.#steps > limit) {
        this.#note();
        return { verdict: "unknown", order: this.#longest, stuck: this.#stuck, steps: this.#steps };
      }
      this.#advance(...move);
    }
    return { verdict: "invalid", order: this.#longest, stuck: this.#stuck, steps: this.#steps };
  }

  #advance(slot: Slot<Op>, state: State): void {
    slot.done = true;
    if (slot.ended) this.#done += 1;
    while (this.#ended[this.#low]?.done === true) this.#low += 1;
    const configuration = this.#configuration(state);
    if (this.#visited.has(configuration)) {
      this.#undo(slot);
      return;
    }
    this.#visited.add(configuration);
    this.#push(state, slot);
  }

  #push(state: State, by: Slot<Op> | null): void {
    this.#stack.push({ moves: this.#moves(state), tried: 0, by });
  }

  #back({ by }: Frame<State, Op>): void {
    this.#note();
    this.#stack.pop();
    if (by !== null) this.#undo(by);
  }

  #undo(slot: Slot<Op>): void {
    slot.done = false;
    if (!slot.ended) return;
    this.#done -= 1;
    this.#low = Math.min(this.#low, slot.at);
  }

  /**
   * What may come next. An op that is possible now and changes nothing is taken at once: whatever order works with it
   * later works with it here.
   */
  #moves(state: State): readonly (readonly [Slot<Op>, State])[] {
    const [candidates, horizon] = this.#candidates();
    const moves: (readonly [Slot<Op>, State])[] = [];
    for (const slot of candidates) {
      this.#steps += 1;
      for (const after of this.#model.step(state, slot.timed.op, horizon)) {
        if (after === state && slot.ended) return [[slot, state]];
        moves.push([slot, after]);
      }
    }
    return moves;
  }

  /** The ops called before any that is still to come has ended, and that moment. Those that end first come first. */
  #candidates(): readonly [readonly Slot<Op>[], number] {
    const near: Slot<Op>[] = [];
    let horizon = Infinity;
    for (let at = this.#low; at < this.#ended.length; at += 1) {
      const slot = this.#ended[at];
      if (slot === undefined || slot.timed.call > horizon) break;
      if (slot.done) continue;
      near.push(slot);
      horizon = Math.min(horizon, slot.timed.end);
    }
    const ready = near.filter(({ timed, after }) => timed.call <= horizon && after?.done !== false);
    if (ready.length > 1) ready.sort((a, b) => a.timed.end - b.timed.end);
    for (const slot of this.#open) {
      if (slot.timed.call > horizon) break;
      if (!slot.done && slot.after?.done !== false) ready.push(slot);
    }
    return [ready, horizon];
  }

  /**
   * Which ops are done, sixteen to a character, and the state. What is done beyond `low` was called before `low` ended,
   * so the list is as short as few calls overlap, however long the history.
   */
  #configuration(state: State): string {
    const horizon = this.#ended[this.#low]?.timed.end ?? 0;
    let text = `${this.#low}:`;
    let bits = 0;
    let count = 0;
    for (let at = this.#low + 1; at < this.#ended.length; at += 1) {
      const slot = this.#ended[at];
      if (slot === undefined || slot.timed.call > horizon) break;
      bits = (bits << 1) | Number(slot.done);
      count += 1;
      if (count % 16 > 0) continue;
      text += String.fromCharCode(bits);
      bits = 0;
    }
    text += String.fromCharCode(bits);
    for (const slot of this.#open) if (slot.done) text += `;${slot.at}`;
    return `${text}|${this.#model.key(state)}`;
  }

  /** Keeps the way that got furthest so far. */
  #note(): void {
    if (this.#done <= this.#furthest) return;
    this.#furthest = this.#done;
    this.#longest = this.#path();
    let first: TimedOp<Op> | null = null;
    for (const { timed, done } of this.#ended) {
      if (!done && (first === null || timed.end < first.end)) first = timed;
    }
    this.#stuck = first;
  }

  #path(): TimedOp<Op>[] {
    return this.#stack.flatMap(({ by }) => (by === null ? [] : [by.timed]));
  }
}
