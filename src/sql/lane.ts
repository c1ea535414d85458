/**
 * One connection to a SQL database on which calls travel in order, those of one moment together: one trip and one commit for
 * all that were made while the call before was under way. What the calls mean is left to the routines.
 */
import { afterReading, systemClock } from "../core/clock.ts";
import { LockError, type LockErrorCode } from "../core/errors.ts";
import type { Verb } from "./wire.ts";

/** An open connection. */
export interface Session {
  /** Calls a routine; rejects with the driver's error. */
  call(verb: Verb, requests: readonly object[]): Promise<readonly unknown[]>;
  /** Called once, when the connection has ended for whatever reason. */
  onEnd: (() => void) | null;
  /** Ends it in peace. */
  end(): Promise<void>;
  /** Ends it at once: the other side need not answer. */
  destroy(): void;
}

/**
 * What an error says about the call. `again`: it was not executed and may succeed if it is tried again at once. `refused`: it
 * was not executed. `stale`: it was not executed, and another connection may do better. `unknown`: it may have been.
 */
export type Verdict = "again" | "refused" | "stale" | "unknown";

/** What a lane needs of a database. */
export interface Database {
  /** The name of the backend, for messages. */
  readonly name: string;
  /** Connects; rejects with the driver's error or a LockError. */
  open(): Promise<Session>;
  judge(error: unknown): Verdict;
}

/** The deadline has passed. */
class Late extends Error {}

interface Call {
  readonly verb: Verb;
  readonly request: object;
  readonly until: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: LockError) => void;
}

/** How many calls travel together at most. */
const batchSize = 500;

/** How often a call is tried that the database rolled back in favour of another. */
const conflictTries = 8;

/** One connection, opened when it is needed and again when it was lost. */
export class Lane {
  readonly #database: Database;
  readonly #deadlineMs: number;
  #session: Session | null = null;
  #opening: Promise<Session> | null = null;
  #calls: Call[] = [];
  #working: Promise<void> | null = null;
  /** Whether a batch has been sent and not been answered. */
  #underway = false;
  #closed = false;

  constructor(database: Database, deadlineMs: number) {
    this.#database = database;
    this.#deadlineMs = deadlineMs;
  }

  /** Whether it is connected and has nothing to do. */
  get idle(): boolean {
    return this.#session !== null && !this.#underway && this.#calls.length === 0;
  }

  /** Connects if need be, so that the first call does not have to wait for it. */
  warm(): void {
    if (this.#session !== null || this.#closed) return;
    this.#open(systemClock.now() + this.#deadlineMs).catch(() => {
      // Whoever calls hears of it.
    });
  }

  /**
   * Calls a routine with one request and gives its answer. Rejects with LOCK_UNAVAILABLE when it surely did not happen,
   * LOCK_OUTCOME_UNKNOWN otherwise, LOCK_CLOSED after close.
   */
  call(verb: Verb, request: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(this.#closedError());
      const until = systemClock.now() + this.#deadlineMs;
      this.#calls.push({ verb, request, until, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Ends what is under way in peace, refuses what has not been sent, and closes the connection. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const { reject } of this.#calls.splice(0)) reject(this.#closedError());
    await Promise.allSettled([this.#working, this.#opening]);
    const session = this.#session;
    this.#session = null;
    if (session === null) return;
    session.onEnd = null;
    const late = systemClock.after(this.#deadlineMs, () => session.destroy());
    await session.end().catch(() => session.destroy());
    late.cancel();
  }

  async #work(): Promise<void> {
    // A turn later, so that all calls of this turn travel together.
    await Promise.resolve();
    while (this.#calls.length > 0) {
      const batch = this.#nextBatch();
      if (batch.length > 0) {
        this.#underway = true;
        const settle = await this.#send(batch);
        this.#underway = false;
        settle();
      }
    }
    this.#working = null;
  }

  /** The calls at the front that want the same routine; those whose deadline has passed are refused. */
  #nextBatch(): readonly Call[] {
    const now = systemClock.now();
    const verb = this.#calls[0]?.verb;
    const end = this.#calls.findIndex((call, index) => call.verb !== verb || index === batchSize);
    const batch = this.#calls.splice(0, end < 0 ? this.#calls.length : end);
    return batch.filter((call) => {
      if (call.until > now) return true;
      call.reject(this.#error("LOCK_UNAVAILABLE", "the connection was busy until the deadline had passed"));
      return false;
    });
  }

  /**
   * Sends a batch and gives the function that tells the callers what came of it. When the deadline passes, the socket is
   * destroyed: no driver notices a frozen server.
   */
  async #send(batch: readonly Call[]): Promise<() => void> {
    const { verb, until } = batch[batch.length - 1] ?? { verb: "look", until: 0 };
    const fail = (error: LockError) => (): void => {
      for (const call of batch) call.reject(error);
    };
    for (let tries = 1; ; tries++) {
      let session: Session;
      try {
        session = this.#session ?? (await this.#open(until));
      } catch (error) {
        return fail(this.#unavailable(error));
      }
      try {
        const requests = batch.map(({ request }) => request);
        const answers = await this.#inTime(until, session.call(verb, requests), () => {});
        if (answers.length !== batch.length)
          throw new Error(`${verb} gave ${answers.length} answers to ${batch.length} requests`);
        return () => batch.forEach((call, index) => call.resolve(answers[index]));
      } catch (error) {
        if (error instanceof LockError) return fail(error);
        const verdict = error instanceof Late ? "unknown" : this.#database.judge(error);
        if (verdict === "unknown" || verdict === "stale") this.#drop(session);
        if (verdict === "unknown") return fail(this.#unknown(verb, error));
        if (verdict !== "again" || tries === conflictTries || systemClock.now() > until)
          return fail(this.#unavailable(error));
        await pause(Math.random() * 5 * 2 ** tries);
      }
    }
  }

  async #open(until: number): Promise<Session> {
    if (this.#session !== null) return this.#session;
    this.#opening ??= this.#connect(until).finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #connect(until: number): Promise<Session> {
    const session = await this.#inTime(until, this.#database.open(), (late) => late.destroy());
    this.#session = session;
    session.onEnd = () => {
      if (this.#session === session) this.#session = null;
    };
    return session;
  }

  #drop(session: Session): void {
    if (this.#session === session) this.#session = null;
    session.onEnd = null;
    session.destroy();
  }

  #inTime<T>(until: number, work: Promise<T>, tooLate: (result: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      let over = false;
      const timer = afterReading(systemClock, until - systemClock.now(), () => {
        over = true;
        reject(new Late(`it has not answered within ${this.#deadlineMs} ms`));
      });
      work.then(
        (result) => {
          timer.cancel();
          if (over) tooLate(result);
          else resolve(result);
        },
        (error: unknown) => {
          timer.cancel();
          reject(error);
        },
      );
    });
  }

  #error(code: LockErrorCode, text: string, cause?: unknown): LockError {
    const { name } = this.#database;
    return new LockError(code, `${name}: ${text}`, {
      backend: name,
      ...(cause === undefined ? {} : { cause }),
    });
  }

  #unavailable(error: unknown): LockError {
    return unavailable(this.#database.name, error);
  }

  #unknown(verb: Verb, error: unknown): LockError {
    const text = `the connection was lost during ${verb}, which may or may not have happened: ${textOf(error)}`;
    return this.#error("LOCK_OUTCOME_UNKNOWN", text, error);
  }

  #closedError(): LockError {
    return this.#error("LOCK_CLOSED", "this client was closed");
  }
}

/** What surely did not happen. */
export function unavailable(backend: string, error: unknown): LockError {
  if (error instanceof LockError) return error;
  return new LockError("LOCK_UNAVAILABLE", `${backend}: ${textOf(error)}`, { backend, cause: error });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.after(ms, resolve);
  });
}

function textOf(error: unknown): string {
  // A connection that is refused on several addresses has its reasons inside.
  if (error instanceof AggregateError && error.message === "") return error.errors.map(textOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
