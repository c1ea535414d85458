/** The caller's side of fencing over HTTP: a fetch that carries the token of a lock. */
import { type Following, follow } from "../../core/aborts.ts";
import { LockError } from "../../core/errors.ts";
import { staleToken } from "../guard.ts";
import { fencingHeader, problemType } from "../http.ts";
import { type Holder, tokenOf } from "../token.ts";

/** What fetch is. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** A holder that may tell when its lock is lost. */
type Telling = Holder | (Exclude<Holder, bigint> & { readonly signal: AbortSignal });

/**
 * A fetch whose requests carry the token of a holder in the header Fencing-Token. If the resource has seen a newer one, it
 * rejects with LOCK_STALE_TOKEN. A request of a lock that is lost is aborted, or not sent: with the reason of its signal.
 */
export function fencedFetch(holder: Telling, send: Fetch = fetch): Fetch {
  const { token, lock } = tokenOf(holder);
  return async (input, init = {}) => {
    const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set(fencingHeader, String(token));
    const own = init.signal ?? (input instanceof Request ? input.signal : null);
    const lost = typeof holder === "object" && "signal" in holder ? holder.signal : null;
    const both = own !== null && lost !== null ? follow([own, lost]) : null;
    const signal = both?.signal ?? own ?? lost;
    const sent = send(input, { ...init, headers, ...(signal === null ? {} : { signal }) });
    const response = await (both === null ? sent : followedBy(both, sent));
    const problem = await refusalIn(response);
    if (problem === null) return response;
    const resource = input instanceof Request ? input.url : String(input);
    if (problem.highest !== null) throw staleToken({ resource, token, highest: problem.highest, lock });
    throw new LockError("LOCK_STALE_TOKEN", `${resource} refused token ${token}: ${problem.detail}`, {
      lock,
    });
  };
}

/** A body may be read for long after its response has come, and is aborted with the signal: nobody says when, so that ends when it is collected. */
const bodies = new FinalizationRegistry<() => void>((end) => end());

async function followedBy({ end }: Following, sent: Promise<Response>): Promise<Response> {
  try {
    const response = await sent;
    if (response.body === null) end();
    else bodies.register(response.body, end);
    return response;
  } catch (error) {
    end();
    throw error;
  }
}

/** What a guard says in a response; null if it is none of a guard. The body stays unread for the caller. */
async function refusalIn(response: Response): Promise<{ highest: string | null; detail: string } | null> {
  const isProblem = response.headers.get("content-type")?.startsWith(problemType) === true;
  if (response.status !== 412 || !isProblem) return null;
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  const field = (name: string): unknown => Reflect.get(Object(body), name);
  if (field("code") !== "LOCK_STALE_TOKEN") return null;
  const highest = field("highest");
  return {
    highest: typeof highest === "string" && /^\d{1,19}$/.test(highest) ? highest : null,
    detail: String(field("detail")).slice(0, 500),
  };
}
