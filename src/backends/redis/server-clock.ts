/** What a client knows of the server's clock from the answers it gets: enough to say "not after" in the server's own time. */

/** How far two clocks may drift apart, per millisecond. */
const drift = 0.0005;

/** A difference beyond this is taken for a step of the server's clock, in milliseconds. */
const stepMs = 1_000;

/** Follows the clock of one server. */
export class ServerClock {
  /** The server's time less ours, at most; null before the first answer. */
  #ahead: number | null = null;
  #learntAt = 0;
  #steps = 0;

  /** How often the server's clock was seen to step by more than a second. */
  get steps(): number {
    return this.#steps;
  }

  /** Learns from an answer: the server read its clock after we sent the question and before we got the answer. */
  learn(serverMs: number, sentAt: number, receivedAt: number): void {
    const most = serverMs - sentAt;
    const least = serverMs - receivedAt;
    const known = this.#ahead === null ? null : this.#ahead + (receivedAt - this.#learntAt) * drift;
    if (known !== null && (least > known + stepMs || most < known - (receivedAt - sentAt) - stepMs))
      this.#steps += 1;
    this.#ahead = known === null || least > known ? most : Math.min(known, most);
    this.#learntAt = receivedAt;
  }

  /** A moment of our clock as one of the server's, in whole milliseconds and never too early; null if nothing is known. */
  at(moment: number): number | null {
    if (this.#ahead === null) return null;
    return Math.ceil(moment + this.#ahead + Math.max(0, moment - this.#learntAt) * drift);
  }
}
