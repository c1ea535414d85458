/**
 * Keeps the first appends of one client to one queue in the order in which they were asked. What travels on one connection
 * is in order, unless an earlier one has to be sent again: then a later one that was faster gives way.
 */

/** One append that is under way. */
export class Turn {
  readonly session: object;
  /** Resolves when it may be sent; null if that is at once. */
  start: Promise<void> | null = null;
  /** Whether its node has been made. */
  made = false;
  private readonly lane: Lane;
  /** Told when its node has been made, or will not be. */
  private readonly waiters: Array<() => void> = [];

  constructor(session: object, lane: Lane) {
    this.session = session;
    this.lane = lane;
  }

  /** Resolves when all that were asked earlier have their nodes; null if they have. */
  earlier(): Promise<unknown> | null {
    const unmade = this.lane.earlierThan(this).filter((turn) => !turn.made);
    if (unmade.length === 0) return null;
    return Promise.all(unmade.map(({ waiters }) => new Promise<void>((resolve) => waiters.push(resolve))));
  }

  /** Its node has been made, after all earlier ones. */
  done(): void {
    this.made = true;
    for (const tell of this.waiters.splice(0)) tell();
    this.lane.advance();
  }

  /** It has been answered. */
  leave(): void {
    this.lane.remove(this);
    this.done();
  }
}

/** The appends to one queue. */
class Lane {
  /** On their way, in order, all on one session. */
  readonly #open: Turn[] = [];
  readonly #waiting: Array<{ readonly turn: Turn; readonly start: () => void }> = [];
  /** The first to a queue that may not be there yet: the others wait until it has made it. */
  #pioneer: Turn | null = null;
  readonly #onEmpty: () => void;

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
  }

  add(turn: Turn, mayBeMissing: boolean): void {
    if (this.#waiting.length === 0 && this.#mayStart(turn)) {
      if (mayBeMissing && this.#open.length === 0) this.#pioneer = turn;
      this.#open.push(turn);
      return;
    }
    turn.start = new Promise((start) => {
      this.#waiting.push({ turn, start });
    });
  }

  earlierThan(turn: Turn): readonly Turn[] {
    return this.#open.slice(0, this.#open.indexOf(turn));
  }

  remove(turn: Turn): void {
    const index = this.#open.indexOf(turn);
    if (index >= 0) this.#open.splice(index, 1);
  }

  /** Lets those go whose turn has come. */
  advance(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined || !this.#mayStart(next.turn)) break;
      this.#waiting.shift();
      this.#open.push(next.turn);
      next.start();
    }
    if (this.#open.length === 0) this.#onEmpty();
  }

  #mayStart({ session }: Turn): boolean {
    if (this.#pioneer?.made === false) return false;
    const [first] = this.#open;
    return first === undefined || first.session === session;
  }
}

/** One lane for each queue that has appends under way. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  /** Takes a turn on a session. Whoever has one says `leave` when it is answered. */
  enter(queue: string, session: object, mayBeMissing: boolean): Turn {
    const lane = this.#lanes.get(queue) ?? new Lane(() => this.#lanes.delete(queue));
    this.#lanes.set(queue, lane);
    const turn = new Turn(session, lane);
    lane.add(turn, mayBeMissing);
    return turn;
  }
}
