/**
 * How long a session surely lives, by our own clock. A server extends a session when it hears of the client, but in an ensemble
 * the leader counts, and a follower reports whom it has heard only with the leader's pings, each half a tick. So a
 * sign of life counts when a write, which needs the leader and a majority, was answered that was sent that much later: then
 * the leader knew the sign of life, and it ends the session no earlier than a whole session length after it.
 * A pong alone proves nothing: a follower that is cut off from its leader goes on giving them.
 */

/** Keeps the signs of life of one session. */
export class Touches {
  /** How long the leader may not have heard of what its follower has heard, in milliseconds. */
  readonly #reportMs: number;
  /** When signs of life were sent that were answered, not yet old enough to be surely known to the leader. */
  #young: number[] = [];
  /** The last that the leader surely knows, if the follower was in touch with it. */
  #known = Number.NEGATIVE_INFINITY;
  #proven = Number.NEGATIVE_INFINITY;

  constructor(reportMs: number) {
    this.#reportMs = reportMs;
  }

  /** The last sign of life that a majority is known to have let stand. */
  get provenAt(): number {
    return this.#proven;
  }

  /** A request that was sent at `sentAt` was answered. */
  add(sentAt: number): void {
    const last = this.#young.at(-1);
    // Fine steps are of no use, and there may be thousands.
    if (last !== undefined && sentAt - last < this.#reportMs / 8) return;
    this.#young.push(sentAt);
  }

  /** A sign of life that went to the leader itself: a session that was made or taken up again. */
  addAtLeader(sentAt: number): void {
    this.#known = Math.max(this.#known, sentAt);
  }

  /** A write that was sent at `sentAt` was answered. */
  prove(sentAt: number): void {
    const oldEnough = sentAt - this.#reportMs;
    let count = 0;
    for (const touch of this.#young) {
      if (touch > oldEnough) break;
      this.#known = Math.max(this.#known, touch);
      count += 1;
    }
    if (count > 0) this.#young.splice(0, count);
    if (this.#known <= sentAt) this.#proven = Math.max(this.#proven, this.#known);
  }
}
