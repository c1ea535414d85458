/**
 * What holds a session with an ensemble together: lives through the ends of connections, moves from server to server, and ends
 * when the servers or our own clock say so. What is asked on it is left to session.ts.
 */
import type { Timer } from "../../../core/clock.ts";
import { type Asked, Connection } from "./connection.ts";
import { connectionLoss, hasZooCode, sessionExpired, type ZooError, zooCodes } from "./errors.ts";
import { introduce } from "./introduction.ts";
import type { SessionOptions, SessionState } from "./options.ts";
import { Route } from "./route.ts";
import { Touches } from "./touches.ts";
import { WaitingLine } from "./waiting-line.ts";
import { Watches } from "./watches.ts";
import { connectRequest, ops, type Welcome } from "./wire.ts";

/** The share of the session for which a server may be silent. */
const silenceShare = 2 / 3;
/** How long close waits for a server. */
const closeMs = 1_000;
const writes: ReadonlySet<number> = new Set([
  ops.create2,
  ops.createContainer,
  ops.createTtl,
  ops.delete,
  ops.multi,
]);

/** The connections of a session, one after the other; it begins to connect when it is made. */
export class Link {
  state: SessionState = "connecting";
  /** 0n until the servers have given one. */
  id = 0n;
  /** What the servers have agreed to; until then what was asked for. */
  sessionMs: number;
  readonly #options: SessionOptions;
  readonly #touches: Touches;
  /** Who is to be told of what; paths are the servers'. */
  readonly watches: Watches = new Watches();
  readonly #listeners = new Set<(state: SessionState) => void>();
  #password: Uint8Array = new Uint8Array(16);
  #connection: Connection | null = null;
  #welcomed = false;
  /** Whether anything was answered on this connection. */
  #served = false;
  /** How many parts of what was watched before the server still has to tell the changes of. */
  #behind = 0;
  #lastZxid = 0n;
  #heardAt = 0;
  readonly #waiting: WaitingLine;
  readonly #route: Route;
  #retryTimer: NodeJS.Timeout | null = null;
  #giveUpTimer: Timer | null = null;
  /** Over, but a server may still have it: if one can be reached in time, it is told. */
  #buryUntil = 0;
  /** What is still to be done when a server is reached after the end. */
  #onWelcome: (() => void) | null = null;
  #onEnd: (() => void) | null = null;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.sessionMs = options.sessionMs;
    this.#touches = new Touches(options.reportMs);
    this.#waiting = new WaitingLine(options.clock, options.reachMs);
    this.#route = new Route(options.hosts, options.random);
    this.#connect();
  }

  /** Until when the session surely lives, by our clock; in the past if that cannot be said. */
  get provenUntil(): number {
    return this.#touches.provenAt + this.sessionMs;
  }

  /** Whether the server has told all changes of what was watched on an earlier connection: until then not in their order. */
  get caughtUp(): boolean {
    return this.#behind === 0;
  }

  /** How many requests are under way or wait. */
  get busy(): number {
    return this.#waiting.length + (this.#connection?.unanswered ?? 0);
  }

  /** Calls back when the state changes. Gives the function that ends it. */
  onState(listener: (state: SessionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ends the session: its ephemeral nodes go at once. A server that cannot be reached is not waited for for long. */
  async close(): Promise<void> {
    if (this.state === "lost" || this.state === "closed") return;
    this.#over("closed");
    this.#onWelcome = () => this.#sendClose();
    if (this.id !== 0n) await this.#ended(() => this.#welcomed && this.#sendClose());
    this.#stop();
  }

  /** Ends all that is open here and leaves the session to the servers, which end it after so long, or sooner if they must. */
  async leave(lifeMs: number): Promise<void> {
    if (this.state === "lost" || this.state === "closed") return;
    const known = this.id !== 0n;
    this.#over("closed");
    const before = this.#connection;
    this.#connection = null;
    before?.end(new Error("the session is left"));
    // A server takes the length from whoever takes the session up.
    if (known && lifeMs < this.sessionMs) {
      this.sessionMs = Math.max(1, Math.ceil(lifeMs));
      this.#onWelcome = () => this.#onEnd?.();
      await this.#ended(() => this.#connect());
    }
    this.#stop();
  }

  #ended(begin: () => unknown): Promise<void> {
    return new Promise((resolve) => {
      const late = setTimeout(resolve, closeMs);
      this.#onEnd = () => {
        clearTimeout(late);
        resolve();
      };
      begin();
    });
  }

  #sendClose(): void {
    this.#connection?.send({
      op: ops.closeSession,
      what: "close the session",
      write: () => {},
      answer: () => this.#onEnd?.(),
      fail: () => this.#onEnd?.(),
    });
  }

  /** Sends a request, now or when there is a connection; requests go in the order in which they are asked. */
  ask(asked: Asked): void {
    if (this.state === "connected" && this.#connection !== null) this.#connection.send(asked);
    else if (this.state === "lost" || this.state === "closed") asked.fail(sessionExpired(true));
    else {
      this.#waiting.add(asked);
      // Whoever waits for an answer wants the process to live until it comes.
      this.#retryTimer?.ref();
    }
  }

  // Connections.

  #connect(): void {
    this.#retryTimer = null;
    const { tls, clock, reachMs } = this.#options;
    const hello = connectRequest({
      lastZxid: this.#lastZxid,
      sessionMs: this.sessionMs,
      sessionId: this.id,
      password: this.#password,
    });
    this.#welcomed = false;
    this.#served = false;
    // All servers get their turn while requests wait, and in half of a session.
    const welcomeMs = Math.max(200, Math.min(reachMs, this.sessionMs / 2) / this.#route.length);
    const connection = new Connection(this.#route.next(), tls, hello, welcomeMs, clock, {
      welcome: (welcome, sentAt) => this.#welcome(welcome, sentAt),
      event: (event) => this.watches.tell(event),
      caughtUp: () => (this.#behind -= 1),
      answered: (op, sentAt, zxid, code) => this.#answered(op, sentAt, zxid, code),
      ended: (cause) => {
        if (this.#connection === connection) this.#disconnected(connection, cause);
      },
    });
    this.#connection = connection;
  }

  #welcome({ sessionMs, sessionId, password }: Welcome, sentAt: number): void {
    const connection = this.#connection;
    if (connection === null) return;
    if (sessionMs <= 0) return this.#expired();
    const { pingShare, auth = [] } = this.#options;
    const isNew = this.id === 0n;
    this.#welcomed = true;
    this.#giveUpTimer?.cancel();
    this.id = sessionId;
    this.#password = password;
    if (this.state === "closed") return this.#onWelcome?.();
    this.sessionMs = sessionMs;
    this.#touches.addAtLeader(sentAt);
    if (isNew) this.#touches.prove(sentAt);
    connection.keepUp(sessionMs * pingShare, sessionMs * silenceShare);
    this.#behind = introduce(connection, auth, this.watches, this.#lastZxid);
    if (this.state === "lost") return this.#bury();
    for (const asked of this.#waiting.take()) connection.send(asked);
    this.#become("connected");
  }

  #answered(op: number, sentAt: number, zxid: bigint, code: number): void {
    if (code === zooCodes.sessionExpired || code === zooCodes.sessionMoved) return;
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (!this.#served) this.#route.reached();
    this.#served = true;
    this.#touches.add(sentAt);
    // A refused write went to a majority, too.
    if (writes.has(op)) this.#touches.prove(sentAt);
  }

  #disconnected(connection: Connection, cause: unknown): void {
    const { clock } = this.#options;
    const wasConnected = this.#welcomed;
    if (wasConnected) this.#heardAt = connection.heardAt;
    this.#connection = null;
    this.#welcomed = false;
    this.#waiting.lastFailure = cause;
    if (this.state === "closed") return this.#onEnd?.();
    if (hasZooCode(cause, "authFailed")) return this.#refused(cause);
    if (this.state === "lost" && clock.now() >= this.#buryUntil) return this.#stop();
    if (wasConnected && this.state === "connected") {
      this.#become("suspended");
      // The servers count from what they heard last; we, from what we heard last of them, which is no earlier than that.
      const leftMs = this.#heardAt + this.sessionMs - clock.now();
      this.#giveUpTimer = clock.after(Math.max(0, leftMs), () => this.#giveUp());
    }
    // One that takes us and then serves nothing is not to be asked again and again without a pause.
    if (!this.#served) this.#route.failed(cause);
    if (this.#route.refused) this.#waiting.fail(connectionLoss(true, cause));
    this.#retryTimer = setTimeout(() => this.#connect(), this.#route.pauseMs());
    // Whoever waits, for an answer or for a change, keeps its process.
    if (this.#waiting.length === 0 && this.watches.isEmpty) this.#retryTimer.unref();
  }

  // Ends.

  /** By our own count the servers have ended the session; if they have not, they are told when one can be reached. */
  #giveUp(): void {
    if (this.state !== "suspended") return;
    this.#buryUntil = this.#options.clock.now() + 2 * this.sessionMs;
    this.#over("lost");
  }

  #bury(): void {
    this.#onEnd = () => this.#stop();
    this.#sendClose();
  }

  #expired(): void {
    if (this.state !== "closed") this.#over("lost");
    this.#onEnd?.();
    this.#stop();
  }

  #refused(error: ZooError): void {
    this.#waiting.fail(error);
    this.#over("lost");
    this.#stop();
  }

  #over(state: "lost" | "closed"): void {
    this.#waiting.fail(sessionExpired(true));
    this.watches.clear();
    if (this.state !== "lost") this.#become(state);
  }

  #stop(): void {
    this.#giveUpTimer?.cancel();
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
    const connection = this.#connection;
    this.#connection = null;
    connection?.end(new Error("the session is over"));
    this.#listeners.clear();
  }

  #become(state: SessionState): void {
    this.state = state;
    for (const listener of this.#listeners) listener(state);
  }
}
