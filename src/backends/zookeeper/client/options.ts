/** How a session with an ensemble is set up, and the states it goes through. Types only. */
import type { ConnectionOptions } from "node:tls";
import type { Clock, Random } from "../../../core/clock.ts";
import type { Ensemble } from "./hosts.ts";

/** Who we are, for the servers' access control. */
export interface Credentials {
  /** "digest", for example. */
  readonly scheme: string;
  /** For digest: "user:password". */
  readonly secret: string;
}

/** How a session is set up. */
export interface SessionOptions extends Ensemble {
  /** How long the servers keep the session without hearing of us: what is asked for; they have bounds of their own. */
  readonly sessionMs: number;
  /** How often we show that we live, as a share of the session; a third at most. */
  readonly pingShare: number;
  /** How late the leader may hear from a follower that we live: half a tick. */
  readonly reportMs: number;
  /** How long a request waits for a server to be reached until it fails unsent. */
  readonly reachMs: number;
  readonly auth?: readonly Credentials[] | undefined;
  readonly tls?: ConnectionOptions | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * connecting: there is no session yet. connected. suspended: there is no connection, the session may live. lost: the
 * session is over, and so are its ephemeral nodes, now or soon. closed: by us.
 */
export type SessionState = "connecting" | "connected" | "suspended" | "lost" | "closed";
