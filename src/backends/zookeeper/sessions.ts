/**
 * The sessions of one client: one for each ttl, since a session's length is how long the entries of a client that has died stay.
 * What hangs on a session is left to others.
 */
import type { Clock, Random } from "../../core/clock.ts";
import { type SessionOptions, ZooSession } from "./client/index.ts";

/** How often we show that we live, as a share of the session. */
const pingShare: number = 1 / 12;

/** How many sessions a client has at most: beyond that, ttls share. */
const mostSessions = 8;

/** A session is shared by ttls that are not much shorter than the one it was made for. */
const sharedUpTo = 1.5;

/** What all sessions of a client have in common. */
export interface SessionsOptions extends Omit<SessionOptions, "sessionMs" | "pingShare"> {
  /** One session of this length for all, or one for each ttl. */
  readonly sessionMs: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** A session is over, by itself: all that hung on it is lost. */
  readonly onLost: (session: ZooSession) => void;
  /** Whether anything hangs on a session. */
  readonly inUse: (session: ZooSession) => boolean;
}

/** What looks are made on, if nothing was appended yet: the session for the default ttl. */
const usualTtlMs = 30_000;

/** The sessions of a client, made when they are needed. */
export class Sessions {
  readonly #options: SessionsOptions;
  /** By the length that was asked for. */
  readonly #sessions = new Map<number, ZooSession>();
  /** Sessions that were ours and are over. */
  readonly #lostIds = new Set<bigint>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** The session for an entry with a ttl: one that keeps it for that long, if the servers allow. */
  forTtl(ttlMs: number): ZooSession {
    const { sessionMs, reportMs } = this.#options;
    // What a session is surely good for is less than its length: by a ping's interval, and by half a tick.
    const needMs = sessionMs ?? Math.min(2 ** 31 - 1, Math.ceil((ttlMs + reportMs) / (1 - pingShare)));
    const exact = this.#sessions.get(needMs);
    if (exact !== undefined) return exact;
    const lengths = [...this.#sessions.keys()].toSorted((a, b) => a - b);
    const longer = lengths.find((length) => length >= needMs);
    if (longer !== undefined && longer <= sharedUpTo * needMs) return this.#get(longer);
    if (lengths.length >= mostSessions) this.#closeIdle();
    if (this.#sessions.size >= mostSessions) return this.#get(longer ?? lengths.at(-1) ?? needMs);
    return this.#get(needMs);
  }

  /** Any session, for looking. */
  any(): ZooSession {
    for (const session of this.#sessions.values()) if (session.state === "connected") return session;
    for (const session of this.#sessions.values()) return session;
    return this.forTtl(usualTtlMs);
  }

  /** Whether a session was ours and is over: what hangs on it, if the servers have not noticed yet, is nobody's. */
  isLost(id: bigint): boolean {
    return this.#lostIds.has(id);
  }

  all(): readonly ZooSession[] {
    return [...this.#sessions.values()];
  }

  #get(askedMs: number): ZooSession {
    const known = this.#sessions.get(askedMs);
    if (known !== undefined) return known;
    const session = new ZooSession({ ...this.#options, sessionMs: askedMs, pingShare });
    session.onState((state) => {
      if (state !== "lost") return;
      this.#sessions.delete(askedMs);
      this.#lostIds.add(session.id);
      this.#options.onLost(session);
    });
    this.#sessions.set(askedMs, session);
    return session;
  }

  #closeIdle(): void {
    for (const [length, session] of this.#sessions) {
      if (this.#options.inUse(session)) continue;
      this.#sessions.delete(length);
      void session.close();
      return;
    }
  }
}
