/**
 * Keeps the first appends of one client to one queue in the order in which they were asked. What travels on one connection
 * is in order, unless an earlier one has to be sent again: then a later one that was faster gives way.
 */

/** One append that is under way. */
export class Turn {
  readonly queue: string;
  readonly session: object;
  /** Resolves when it may be sent; null if that is at once. */
  start: Promise<void> | null = null;
  /** Whether its node has been made. */
  made = false;
  private readonly lane: Lane;
  /** Resolves when its node has been made, or will not be. */
  private readonly over: Promise<void>;
  private endWait: () => void = () => {};

  constructor(queue: string, session: object, lane: Lane) {
    this.queue = queue;
    this.session = session;
    this.lane = lane;
    this.over = new Promise((resolve) => {
      this.endWait = resolve;
    });
  }

  /** Resolves when all that were asked earlier have their nodes; null if they have. */
  earlier(): Promise<unknown> | null {
    const unmade = this.lane.open.slice(0, this.lane.open.indexOf(this)).filter((turn) => !turn.made);
    return unmade.length === 0 ? null : Promise.all(unmade.map(({ over }) => over));
  }

  /** Its node has been made, after all earlier ones. */
  done(): void {
    this.made = true;
    this.endWait();
  }
}

interface Lane {
  /** On their way, in order, all on one session. */
  readonly open: Turn[];
  readonly waiting: Array<{ readonly turn: Turn; readonly start: () => void }>;
}

/** One lane for each queue that has appends under way. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  /** Takes a turn. Whoever has one says `leave` when it is answered. */
  enter(queue: string, session: object): Turn {
    const lane = this.#lanes.get(queue) ?? { open: [], waiting: [] };
    const turn = new Turn(queue, session, lane);
    this.#lanes.set(queue, lane);
    const [first] = lane.open;
    if (lane.waiting.length === 0 && (first === undefined || first.session === session)) lane.open.push(turn);
    else {
      turn.start = new Promise((start) => {
        lane.waiting.push({ turn, start });
      });
    }
    return turn;
  }

  leave(turn: Turn): void {
    turn.done();
    const lane = this.#lanes.get(turn.queue);
    if (lane === undefined) return;
    lane.open.splice(lane.open.indexOf(turn), 1);
    if (lane.open.length > 0) return;
    const session = lane.waiting[0]?.turn.session;
    while (lane.waiting[0] !== undefined && lane.waiting[0].turn.session === session) {
      const next = lane.waiting.shift();
      if (next === undefined) break;
      lane.open.push(next.turn);
      next.start();
    }
    if (lane.open.length === 0) this.#lanes.delete(turn.queue);
  }
}
