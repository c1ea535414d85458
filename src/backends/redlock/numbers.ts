/** The numbers that a client asks for its entries with: tokens that most likely are above all that the nodes know. */
import type { Clock } from "../../core/clock.ts";
import type { Node } from "./node.ts";

/**
 * How far beyond the clocks of the nodes a token is proposed, in milliseconds: a call that takes so much longer than the
 * fastest one finds it still ahead. The same for all clients, so that they do not overtake one another by it. And less
 * than a server takes to start: one that comes back without its data, and without a quarantine, knows only its clock.
 */
const headStartMs = 20;

/** How long what a node's clock said is relied on, in milliseconds: clocks drift apart. */
const freshMs = 60_000;

/** Numbers of one client: never the same twice, and growing, so that calls that travel together do not refuse each other. */
export class Numbers {
  readonly #nodes: readonly Node[];
  readonly #clock: Clock;
  readonly #fencing: boolean;
  /** In µs since 1970, as all of them. */
  #last = 0;

  constructor(nodes: readonly Node[], clock: Clock, fencing: boolean) {
    this.#nodes = nodes;
    this.#clock = clock;
    this.#fencing = fencing;
  }

  /**
   * The number of the next entry. As a token it is a proposal, and 0 if nothing is known of the nodes' clocks: no node
   * takes that. Without tokens it only tells one life of an entry from another.
   */
  next(): bigint {
    const nowMs = this.#fencing ? this.#latestMs() : this.#clock.wallMs();
    if (nowMs === 0) return 0n;
    this.#last = Math.max(this.#last + 1, Math.ceil(nowMs * 1000));
    return BigInt(this.#last);
  }

  /** A larger number was given to an entry: the next one is above it. */
  raise(number: bigint): void {
    this.#last = Math.max(this.#last, Number(number));
  }

  /** What the clocks of the nodes say when a call arrives that is sent now, and a little more. */
  #latestMs(): number {
    const now = this.#clock.recent();
    let latestMs = 0;
    for (const { serverClock } of this.#nodes) {
      const ms = serverClock.most(now, freshMs);
      if (ms !== null && ms > latestMs) latestMs = ms;
    }
    return latestMs === 0 ? 0 : latestMs + headStartMs;
  }
}
