/**
 * Fencing over HTTP, as far as it is the same everywhere: the header, the answers, and the order of steps. How each
 * framework hands a request on, and when it has answered it, is in the files of http/.
 */
import type { Duration } from "../core/duration.ts";
import { LockError } from "../core/errors.ts";
import { type MemoryGuard, memoryGuard } from "./memory.ts";
import { parseToken } from "./token.ts";

/** The header in which a token travels, as decimal text. */
export const fencingHeader = "fencing-token";

/** How requests are fenced. */
export interface HttpFenceOptions<Request> {
  /** The resource that a request is about. Several addresses of one thing need one name here. */
  readonly resource: string | ((request: Request) => string);
  /**
   * The guard. The default is one for this process; for tokens that outlive it, or are shared with other processes, give
   * `memoryGuard({ keep })`.
   */
  readonly guard?: MemoryGuard | undefined;
  /**
   * Whether a request without a token is refused. A token that is there is checked in any case.
   * @default for all methods but GET, HEAD, OPTIONS and TRACE
   */
  readonly required?: boolean | ((request: Request) => boolean) | undefined;
  /**
   * How long a request waits for earlier ones of the same resource until it is refused with 503.
   * @default "30s"
   */
  readonly wait?: Duration | undefined;
}

/** A refusal, as RFC 9457 has it. Tokens are decimal text. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The code of the LockError. */
  readonly code: string;
  readonly resource?: string;
  readonly token?: string;
  /** The highest token that the resource has seen. */
  readonly highest?: string;
}

/** What the body of a Problem is sent as. */
export const problemType = "application/problem+json";

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  412: "Precondition Failed",
  428: "Precondition Required",
  503: "Service Unavailable",
};

/** The answer to a request that a guard refused, for error handlers; null if the error is no refusal of a guard. */
export function problemOf(error: unknown): Problem | null {
  if (!(error instanceof LockError)) return null;
  if (error.code === "LOCK_STALE_TOKEN") return problem(412, error.code, error.message);
  return error.retryable ? problem(503, error.code, error.message) : null;
}

function problem(status: number, code: string, detail: string, more: Partial<Problem> = {}): Problem {
  return { type: "about:blank", title: titles[status] ?? "", status, detail, code, ...more };
}

const safeMethods = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** A request, as far as it is looked at. */
export interface Asked<Request> {
  readonly request: Request;
  readonly method: string | undefined;
  /** What the header says; undefined if there is none. */
  readonly header: string | readonly string[] | undefined;
}

/**
 * Lets a request through, or gives the answer that refuses it. `work` is what handles it: it resolves when that has
 * written all that it will. Errors of the work are passed on.
 */
export type Gate<Request> = (asked: Asked<Request>, work: () => Promise<void>) => Promise<Problem | null>;

/** The gate of some options. */
export function gateOf<Request>(options: HttpFenceOptions<Request>): Gate<Request> {
  const { resource, guard = memoryGuard(), required, wait } = options;
  const isRequired = (asked: Asked<Request>): boolean => {
    if (typeof required === "boolean") return required;
    return required?.(asked.request) ?? !safeMethods.has(asked.method ?? "");
  };
  return async (asked, work) => {
    if (asked.header === undefined) {
      if (isRequired(asked)) {
        return problem(
          428,
          "LOCK_INVALID",
          `this request needs the token of a lock in the header Fencing-Token`,
        );
      }
      await work();
      return null;
    }
    let token: bigint;
    try {
      token = parseToken(typeof asked.header === "string" ? asked.header : asked.header.join(", "));
    } catch (error) {
      return problem(400, "LOCK_INVALID", `Fencing-Token: ${error instanceof Error ? error.message : ""}`);
    }
    const name = typeof resource === "string" ? resource : resource(asked.request);
    let begun = false;
    const begin = (): Promise<void> => {
      begun = true;
      return work();
    };
    try {
      await guard.write(name, token, begin, wait === undefined ? {} : { wait });
      return null;
    } catch (error) {
      const refusal = begun ? null : problemOf(error);
      if (refusal === null) throw error;
      // What is known without it is enough for a refusal.
      const highest = refusal.status === 412 ? await guard.highest(name).catch(() => null) : null;
      const seen = highest === null ? {} : { highest: String(highest) };
      return { ...refusal, resource: name, token: String(token), ...seen };
    }
  };
}
