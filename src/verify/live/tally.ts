/** Numbers of a run that no verdict tells: overlaps, stale writes with and without the fence, false rejects. */
import type { HistoryEvent } from "../history.ts";
import { firstFrom, type Grant } from "../trace.ts";
import { traceHistory } from "../tracer.ts";

/** What a resource did with writes. */
export interface WriteTally {
  readonly accepted: number;
  readonly refused: number;
  /** Writes accepted although a later holder had written before. */
  readonly staleAccepted: number;
  /** Writes refused although their holder was inside its validity, and nobody was granted the lock after it. */
  readonly falseRejects: number;
  /** Acknowledged values that are missing in the end. */
  readonly lost: number;
}

/** Counts what the two resources did, by their own record. */
export function tallyWrites(events: readonly HistoryEvent[]): Record<"fenced" | "unfenced", WriteTally> {
  const grants = new Map(traceHistory(events).grants.map((grant) => [grant.attempt.id, grant]));
  return { fenced: tally(events, "fenced", grants), unfenced: tally(events, "unfenced", grants) };
}

function tally(
  events: readonly HistoryEvent[],
  proc: string,
  grants: ReadonlyMap<string, Grant>,
): WriteTally {
  const highest = new Map<string, bigint>();
  const acknowledged = new Map<string, Set<string>>();
  let [accepted, refused, staleAccepted, falseRejects, lost] = [0, 0, 0, 0, 0];
  for (const event of events) {
    if (event.proc !== proc) continue;
    const { resource = "", value = "" } = event;
    const values = acknowledged.get(resource) ?? new Set();
    acknowledged.set(resource, values);
    if (event.f === "read" && event.type === "ok") {
      const found = new Set(event.values);
      lost += [...values].filter((each) => !found.has(each)).length;
    }
    if (event.f !== "guard") continue;
    const grant = grants.get(event.attempt ?? "");
    if (event.type !== "ok") {
      refused += 1;
      if (grant !== undefined && isRightful(grant, event)) falseRejects += 1;
      continue;
    }
    accepted += 1;
    values.add(value);
    const token = grant?.token ?? 0n;
    const top = highest.get(resource) ?? -1n;
    if (token < top) staleAccepted += 1;
    else highest.set(resource, token);
  }
  return { accepted, refused, staleAccepted, falseRejects, lost };
}

/** Whether a holder may write: it believes, and it is the last that was granted. */
function isRightful(grant: Grant, { i }: HistoryEvent): boolean {
  if (i <= grant.ok.i || i >= grant.end) return false;
  const { grants } = grant.attempt.lock;
  const later = grants[firstFrom(grants, grant.ok.i + 1)];
  return later === undefined || later.ok.i > i;
}
