/** Whether a node that was just connected may vote: one that lost its data in a restart counts again after the longest ttl. */
import type { Clock } from "../../core/clock.ts";
import type { LockError } from "../../core/errors.ts";
import { readInfo } from "../redis/health.ts";
import { asText, type Link } from "../redis/link.ts";
import { redlockError } from "./failures.ts";

/** What is known of the server behind a connection. */
export interface Identity {
  /** Random for each start of the server; "" if it does not say. */
  readonly runId: string;
  /** How long it has been up, in milliseconds and never too much; 0 if it does not say. */
  readonly upMs: number;
  /** What its clock says, in milliseconds since 1970; null if it does not say. */
  readonly wallMs: number | null;
  /** Whether all that it has acknowledged survives a restart. */
  readonly keeps: boolean;
}

/** What was known of the node before: which run it was, and when it was last heard. */
interface Known {
  readonly runId: string;
  readonly lastHeardAt: number;
}

/** Asks a server who it is. */
export async function identify(link: Link): Promise<Identity> {
  const info = readInfo(asText(await link.send("INFO", [])));
  const wallUs = Number(info.get("server_time_usec") ?? 0);
  const keeps = info.get("aof_enabled") === "1" && (await syncsAlways(link));
  return {
    runId: info.get("run_id") ?? "",
    upMs: 1_000 * Math.max(0, Number(info.get("uptime_in_seconds") ?? 0)),
    wallMs: wallUs > 0 ? wallUs / 1_000 : null,
    keeps,
  };
}

/** A server that does not say is taken for one that does not. */
async function syncsAlways(link: Link): Promise<boolean> {
  try {
    const answer = await link.send("CONFIG", ["GET", "appendfsync"]);
    return JSON.stringify(answer).includes("always");
  } catch {
    return false;
  }
}

/**
 * From when on its votes count, by our clock. What it may have forgotten was granted before it started, so it is over
 * one longest ttl after that. The server tells how long it has been up by a clock that may step: where we have heard it
 * ourselves in its last run, it cannot have been up for longer than since then.
 */
function countsFrom(identity: Identity, known: Known | null, now: number, quarantineMs: number): number {
  if (quarantineMs === 0 || identity.keeps) return now;
  if (known !== null && known.runId !== "" && known.runId === identity.runId) return now;
  const upMs = known === null ? identity.upMs : Math.min(identity.upMs, now - known.lastHeardAt);
  return Math.max(now, now - upMs + quarantineMs);
}

/** What one client knows of a node's runs, and from when on its votes count. */
export class Admission {
  readonly #clock: Clock;
  readonly #quarantineMs: number;
  #known: Known | null = null;
  #countsFrom: number = Number.NEGATIVE_INFINITY;
  /** Whether it surely counts: then nobody has to look at the clock. */
  #counts = false;

  constructor(clock: Clock, quarantineMs: number) {
    this.#clock = clock;
    this.#quarantineMs = quarantineMs;
  }

  /** It has said who it is. */
  learn(identity: Identity): void {
    const now = this.#clock.now();
    const from = countsFrom(identity, this.#known, now, this.#quarantineMs);
    this.#countsFrom = Math.max(this.#countsFrom, from);
    this.#counts = this.#countsFrom <= now;
    this.#known = { runId: identity.runId, lastHeardAt: now };
  }

  /** Its connection is lost. */
  lost(): void {
    if (this.#known !== null) this.#known = { ...this.#known, lastHeardAt: this.#clock.now() };
  }

  /** Why its votes do not count now, though it answers; null if they do. */
  get voidBecause(): LockError | null {
    if (this.#counts) return null;
    const leftMs = this.#countsFrom - this.#clock.recent();
    this.#counts = leftMs <= 0;
    if (this.#counts) return null;
    const text = `it was restarted, and may have forgotten who holds: it counts again in ${Math.ceil(leftMs)} ms (quarantineMs)`;
    return redlockError("LOCK_UNAVAILABLE", text);
  }
}
