/**
 * M2: tokens of one lock are distinct, and a grant asked for after another was given has the larger one. M3: the
 * guarded resource accepts no token below one that it accepted before.
 */
import type { HistoryEvent } from "../history.ts";
import type { Grant } from "../trace.ts";
import { holder, quote } from "../words.ts";
import type { Check } from "./check.ts";

/** M2. The tracer noted with each request the highest token given out before it was asked for. */
export const checkTokens: Check = (trace, findings) => {
  let looked = 0;
  for (const lock of trace.locks.values()) {
    const seen = new Map<bigint, Grant>();
    for (const grant of lock.grants) {
      const { token, attempt, ok } = grant;
      if (token === undefined) continue;
      looked += 1;
      const { floor } = attempt;
      const twin = seen.get(token);
      if (twin !== undefined) {
        findings.violate(
          `${quote(lock.name)} was granted to ${holder(twin)} and ${holder(grant)} with the same token.`,
          [twin.ok, ok],
        );
      } else if (floor?.token !== undefined && token < floor.token) {
        findings.violate(
          `${holder(grant)} asked for ${quote(lock.name)} after ${holder(floor)} had it, yet got a smaller token.`,
          [floor.ok, attempt.call.invoke, ok],
        );
      }
      seen.set(token, grant);
    }
  }
  return looked;
};

/** M3. The resource's own log is in arrival order; writes without a token are not its claim. */
export const checkGuard: Check = (trace, findings) => {
  let looked = 0;
  const highest = new Map<string, HistoryEvent>();
  for (const event of trace.guarded) {
    const resource = event.resource ?? event.lock;
    if (event.type !== "ok" || event.token === undefined || resource === undefined) continue;
    looked += 1;
    const top = highest.get(resource);
    if (top?.token === undefined || event.token >= top.token) highest.set(resource, event);
    else {
      findings.violate(
        `The resource ${quote(resource)} accepted a write with token ${event.token} after one with token ${top.token}.`,
        [top, event],
      );
    }
  }
  return looked;
};
