/** One server of a fleet, as one client sees it: whether it is connected and was let in. What is sent to it is left to outgoing.ts. */
import type { Clock } from "../../core/clock.ts";
import type { LockError } from "../../core/errors.ts";
import { notConnected, sentFailure } from "../redis/failures.ts";
import type { Link } from "../redis/link.ts";
import { ServerClock } from "../redis/server-clock.ts";
import { Admission, identify } from "./admission.ts";
import type { Batch } from "./batch.ts";
import { type Destination, Outgoing } from "./outgoing.ts";
import { callsScript } from "./scripts.ts";
import { shortScripts } from "./short.ts";

/** How long to wait until a server is asked again who it is that did not say, in milliseconds. */
const admissionPauseMs = 200;

/** How a node is set up. */
export interface NodeSettings {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly quarantineMs: number;
}

/** A server among others. */
export class Node implements Destination {
  readonly index: number;
  readonly label: string;
  readonly link: Link;
  readonly serverClock: ServerClock = new ServerClock();
  readonly #settings: NodeSettings;
  readonly #admission: Admission;
  readonly #outgoing: Outgoing;
  #admitted = false;
  #mayLoad = true;
  /** Counts connections, so that an answer about an earlier one is known. */
  #connection = 0;
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(index: number, label: string, link: Link, settings: NodeSettings) {
    this.index = index;
    this.label = label;
    this.link = link;
    this.#settings = settings;
    this.#admission = new Admission(settings.clock, settings.quarantineMs);
    this.#outgoing = new Outgoing(this, settings.clock, settings.deadlineMs);
  }

  /** Begins to connect. */
  start(): void {
    this.link.start(
      () => this.#connected(),
      () => this.#lost(),
    );
    if (this.link.isReady && this.#connection === 0) this.#connected();
  }

  /** Whether batches can be sent now. */
  get isUp(): boolean {
    return this.#admitted && this.link.isReady;
  }

  /** Resolves when it has been let in. Rejects with LOCK_UNAVAILABLE if it is not within so many milliseconds. */
  whenUp(ms: number): Promise<void> {
    if (this.isUp) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = this.#settings.clock.after(ms, () => {
        this.#waiting.delete(up);
        reject(notConnected(ms, this.link.lastError));
      });
      const up = (): void => {
        timer.cancel();
        resolve();
      };
      this.#waiting.add(up);
    });
  }

  /** Why its votes do not count now, though it answers; null if they do. */
  get voidBecause(): LockError | null {
    return this.#admission.voidBecause;
  }

  #lost(): void {
    this.#admission.lost();
    this.#outgoing.lost();
    this.#admitted = false;
    this.#connection += 1;
  }

  /** Nothing is sent on a new connection until it is known whose it is. */
  #connected(): void {
    this.#admitted = false;
    const connection = ++this.#connection;
    void this.#admit(connection).catch((error: unknown) => {
      if (connection !== this.#connection || this.#closed) return;
      this.#outgoing.failHeld(sentFailure(error));
      this.#settings.clock.after(admissionPauseMs, () => {
        if (connection === this.#connection && !this.#closed && this.link.isReady) this.#connected();
      });
    });
  }

  async #admit(connection: number): Promise<void> {
    const { clock } = this.#settings;
    this.#mayLoad = true;
    const loaded = this.#load();
    const askedAt = clock.now();
    const [identity] = await Promise.all([identify(this.link), loaded]);
    if (connection !== this.#connection || this.#closed) return;
    if (identity.wallMs !== null) this.serverClock.learn(identity.wallMs, askedAt, clock.now());
    this.#admission.learn(identity);
    this.#admitted = true;
    this.#outgoing.payDebts();
    this.#outgoing.flush();
    for (const up of this.#waiting) up();
    this.#waiting.clear();
  }

  /** A user that may not load scripts sends their text when it is asked for. */
  async #load(): Promise<void> {
    const scripts = [callsScript, ...shortScripts];
    const refused = (): void => {
      this.#mayLoad = false;
    };
    await Promise.all(scripts.map((script) => this.link.send("SCRIPT", ["LOAD", script]).catch(refused)));
  }

  reload(): void {
    if (this.#mayLoad) void this.#load();
  }

  /** Sends a batch now, or as soon as the node is let in. */
  send(batch: Batch): void {
    this.#outgoing.send(batch);
  }

  /** The deadline of a batch has passed. */
  expire(batch: Batch): void {
    this.#outgoing.expire(batch);
  }

  async close(error: LockError): Promise<void> {
    this.#closed = true;
    this.#outgoing.close(error);
    await this.link.close();
  }
}
