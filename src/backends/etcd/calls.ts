/**
 * Calls to etcd as the rest of the backend makes them: what surely was not done is tried again for a while, elsewhere;
 * what failed for good becomes a LockError that says what happened and what to do.
 */
import type { Clock } from "../../core/clock.ts";
import { LockError } from "../../core/errors.ts";
import type { EtcdClient } from "./client/client.ts";
import type { Init } from "./client/codec.ts";
import { EtcdError, status } from "./client/errors.ts";
import type { Method } from "./client/methods.ts";

/** Between two tries, in milliseconds: an election takes about a second. */
const pauseMs = 50;

/** Makes calls with patience. */
export class Calls {
  readonly client: EtcdClient;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  #closed = false;

  constructor(client: EtcdClient, clock: Clock, patienceMs: number) {
    this.client = client;
    this.#clock = clock;
    this.#patienceMs = patienceMs;
  }

  /** A call that may be made twice: it changes nothing, or nothing more the second time. */
  read<Request, Response>(
    what: string,
    method: Method<Request, Response>,
    request: Init<Request>,
    deadlineMs?: number,
  ): Promise<Response> {
    return this.#make(what, method, request, deadlineMs, true);
  }

  /** A call that is sent again only where it surely was not carried out. */
  write<Request, Response>(
    what: string,
    method: Method<Request, Response>,
    request: Init<Request>,
  ): Promise<Response> {
    return this.#make(what, method, request, undefined, false);
  }

  #mayPass(failure: EtcdError): boolean {
    return isPassing(failure) || this.client.isForToken(failure.message);
  }

  /** Calls that are under way reject, and none is made any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.client.close();
  }

  async #make<Request, Response>(
    what: string,
    method: Method<Request, Response>,
    request: Init<Request>,
    deadlineMs: number | undefined,
    repeatable: boolean,
  ): Promise<Response> {
    const until = this.#clock.now() + this.#patienceMs;
    for (;;) {
      try {
        return await this.client.call(method, request, { deadlineMs });
      } catch (error) {
        if (this.#closed) throw closedError(error);
        const failure = error instanceof EtcdError ? error : null;
        const harmless = repeatable || failure?.notDone === true;
        const again = harmless && failure !== null && this.#mayPass(failure);
        if (!again || this.#clock.now() + pauseMs > until) throw asLockError(what, error, harmless);
      }
      await new Promise<void>((resolve) => {
        setTimeout(resolve, pauseMs * (0.5 + Math.random()));
      });
    }
  }
}

/** The error of a client that was closed. */
export function closedError(cause?: unknown): LockError {
  return new LockError("LOCK_CLOSED", "this client of etcd was closed", { backend: "etcd", cause });
}

/** Whether a call was refused because its lease does not exist any more. */
export function isLeaseGone(error: unknown): boolean {
  return (
    error instanceof LockError && error.cause instanceof EtcdError && error.cause.status === status.notFound
  );
}

/** Whether a server has refused a call because of what it asks for, and so surely has not carried it out. */
export function isRefused(error: unknown): boolean {
  const failure = error instanceof LockError && error.cause instanceof EtcdError ? error.cause : null;
  return failure?.notDone === true && !isPassing(failure);
}

/** Whether a failure may pass by itself: a server that is away, without a leader or overloaded. */
function isPassing({ status: code, message }: EtcdError): boolean {
  if (code === status.unavailable || code === status.deadlineExceeded) return true;
  return /too many requests/.test(message);
}

/** `harmless`: it surely was not carried out, or it does not matter. */
function asLockError(what: string, error: unknown, harmless: boolean): LockError {
  const code = harmless ? "LOCK_UNAVAILABLE" : "LOCK_OUTCOME_UNKNOWN";
  const doubt = harmless ? "" : ", and may or may not have happened";
  const advice = error instanceof EtcdError ? adviceOn(error) : "";
  const text = error instanceof Error ? error.message : String(error);
  return new LockError(code, `etcd: ${what} failed${doubt}: ${text}${advice}`, {
    backend: "etcd",
    cause: error,
  });
}

function adviceOn({ status: code, message }: EtcdError): string {
  if (/database space exceeded/.test(message)) {
    return "; the store is full: compact and defragment it, then clear the alarm (etcdctl alarm disarm)";
  }
  if (/user name is empty/.test(message)) return "; give auth, or user:password in the URL";
  if (code === status.permissionDenied)
    return "; grant the user a role that may read and write below the prefix";
  return /authentication failed/.test(message) ? "; check user and password" : "";
}
