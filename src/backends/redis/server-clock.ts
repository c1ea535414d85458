/** What a client knows of servers' clocks from the answers it gets: enough to say "not after" in their own time, and to see steps. */

/** How far two clocks may drift apart, per millisecond. */
const drift = 0.0005;

/** A difference beyond this is taken for a step of the server's clock, in milliseconds. */
const stepMs = 1_000;

/** Follows the clock of one server. */
export class ServerClock {
  /** The server's time less ours, at most; null before the first answer. */
  #ahead: number | null = null;
  /** By how much that may be too much: the time that the answer took which it is from, and what drift may add. */
  #slackMs = 0;
  #learntAt = 0;

  /**
   * Learns from an answer: the server read its clock after we sent the question and before we got the answer. Gives by how
   * many milliseconds it has stepped meanwhile, at least; 0 if that is not sure, or less than a second.
   */
  learn(serverMs: number, sentAt: number, receivedAt: number): number {
    const most = serverMs - sentAt;
    const least = serverMs - receivedAt;
    const driftMs = (receivedAt - this.#learntAt) * drift;
    const known = this.#ahead === null ? null : this.#ahead + driftMs;
    const slackMs = this.#slackMs + 2 * driftMs;
    const forward = known === null ? 0 : least - known;
    const back = known === null ? 0 : known - slackMs - most;
    const isBetter = known === null || least > known || most <= known;
    this.#ahead = isBetter ? most : known;
    this.#slackMs = isBetter ? receivedAt - sentAt : slackMs;
    this.#learntAt = receivedAt;
    if (forward > stepMs) return forward;
    return back > stepMs ? -back : 0;
  }

  /** A moment of our clock as one of the server's, in whole milliseconds and never too early; null if nothing is known. */
  at(moment: number): number | null {
    const ms = this.most(moment, Number.POSITIVE_INFINITY);
    return ms === null ? null : Math.ceil(ms);
  }

  /** The same, not rounded; null, too, if nothing was heard of it for so many milliseconds. */
  most(moment: number, freshMs: number): number | null {
    const sinceMs = Math.max(0, moment - this.#learntAt);
    return this.#ahead === null || sinceMs > freshMs ? null : moment + this.#ahead + sinceMs * drift;
  }
}

/** The clocks by which the queues of a store live: one for each slot of a cluster, since its nodes have clocks of their own. */
export class ServerClocks {
  readonly #bySlot = new Map<number, ServerClock>();
  readonly #onStep: (ms: number) => void;
  #last = new ServerClock();
  #steps = 0;

  constructor(onStep: (ms: number) => void) {
    this.#onStep = onStep;
  }

  /** How often one of them was seen to step by more than a second. */
  get steps(): number {
    return this.#steps;
  }

  /** Learns from an answer about a slot. */
  learn(slot: number, serverMs: number, sentAt: number, receivedAt: number): void {
    let clock = this.#bySlot.get(slot);
    if (clock === undefined) this.#bySlot.set(slot, (clock = new ServerClock()));
    const step = clock.learn(serverMs, sentAt, receivedAt);
    this.#last = clock;
    if (step === 0) return;
    this.#steps += 1;
    this.#onStep(step);
  }

  /** A moment of our clock as one of the slot's server; of a slot that has not answered yet, by the last one that has. */
  at(slot: number, moment: number): number | null {
    return (this.#bySlot.get(slot) ?? this.#last).at(moment);
  }
}
