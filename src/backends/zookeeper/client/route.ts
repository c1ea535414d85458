/** Which server is tried next, and when; connecting is left to the link. */
import type { Random } from "../../../core/clock.ts";
import type { Host } from "./hosts.ts";
import { TlsRefusal } from "./socket.ts";

/** So often all servers are tried without a pause: a connection that has just worked may end while the next is made. */
const roundsAtOnce = 2;
/** How long the first pause is, on average, and the longest. */
const firstPauseMs = 10;
const longestPauseMs = 1_000;

/** The servers, one after the other, beginning anywhere. */
export class Route {
  readonly #hosts: readonly Host[];
  readonly #random: Random;
  #index: number;
  /** How many tries in a row came to nothing, and with how many TLS was not to be had. */
  #failures = 0;
  #tlsRefusals = 0;

  constructor(hosts: readonly Host[], random: Random) {
    this.#hosts = hosts;
    this.#random = random;
    this.#index = Math.floor(random() * hosts.length);
  }

  /** How many servers there are. */
  get length(): number {
    return this.#hosts.length;
  }

  next(): Host {
    const host = this.#hosts[this.#index % this.#hosts.length];
    this.#index += 1;
    if (host === undefined) throw new TypeError("no host of ZooKeeper was given");
    return host;
  }

  /** A server has taken us. */
  reached(): void {
    this.#failures = 0;
    this.#tlsRefusals = 0;
  }

  /** A try came to nothing. */
  failed(cause: unknown): void {
    this.#failures += 1;
    this.#tlsRefusals = cause instanceof TlsRefusal ? this.#tlsRefusals + 1 : 0;
  }

  /** Whether there is not one server that TLS can be spoken with: time does not mend that. */
  get refused(): boolean {
    return this.#tlsRefusals >= this.#hosts.length;
  }

  /** How long to wait before the next try: when all have failed, and failed again, a little longer each time. */
  pauseMs(): number {
    const rounds = Math.floor(this.#failures / this.#hosts.length);
    if (rounds < roundsAtOnce) return 0;
    return Math.min(longestPauseMs, firstPauseMs * 2 ** (rounds - roundsAtOnce)) * (0.5 + this.#random());
  }
}
