/** Keeps the calls of one client to one queue in order when they travel on different connections. */

/** What travels on one connection needs no help. */
interface Lane {
  session: object;
  /** How many calls are under way on it. */
  open: number;
  readonly waiting: Array<{ readonly session: object; readonly start: () => void }>;
}

/** One lane for each queue that has calls under way. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  /** Null if a call may go at once; else resolves when its turn has come. Each call says `leave` when it is answered. */
  enter(queue: string, session: object): Promise<void> | null {
    const lane = this.#lanes.get(queue);
    if (lane === undefined) {
      this.#lanes.set(queue, { session, open: 1, waiting: [] });
      return null;
    }
    if (lane.session === session && lane.waiting.length === 0) {
      lane.open += 1;
      return null;
    }
    return new Promise((start) => {
      lane.waiting.push({ session, start });
    });
  }

  leave(queue: string): void {
    const lane = this.#lanes.get(queue);
    if (lane === undefined) return;
    lane.open -= 1;
    if (lane.open > 0) return;
    const [next] = lane.waiting;
    if (next === undefined) {
      this.#lanes.delete(queue);
      return;
    }
    lane.session = next.session;
    while (lane.waiting[0]?.session === lane.session) {
      lane.open += 1;
      lane.waiting.shift()?.start();
    }
  }
}
