/**
 * Joins the events of one call, an invoke and its answer, and refuses what does not fit. Knows nothing of locks.
 */
import { HistoryError, type HistoryEvent } from "./history.ts";
import type { Call } from "./trace.ts";

/** Opens a call, which is given, or ends the one that the event answers. */
export function join(open: Call[], event: HistoryEvent): Call | null {
  const at = open.findIndex(
    ({ invoke }) => invoke.f === event.f && invoke.call === event.call && invoke.proc === event.proc,
  );
  const found = open[at];
  if (event.type === "invoke") {
    if (found !== undefined) throw wrong(event, "the same call is under way; give each its own call number");
    const call: Call = { invoke: event, end: null };
    open.push(call);
    return call;
  }
  if (found === undefined) throw wrong(event, "it was never invoked");
  found.end = event;
  open.splice(at, 1);
  return null;
}

/** Refuses an invoke where there is no call. */
export function single(event: HistoryEvent): void {
  if (event.type === "invoke") throw wrong(event, "it is no call and has no invoke");
}

/** Why an event cannot stand where it stands. */
export function wrong(event: HistoryEvent, why: string): HistoryError {
  return new HistoryError(
    `event ${event.i}: ${event.f} ${event.type} by ${JSON.stringify(event.proc)}: ${why}`,
  );
}
