/**
 * A1: answers about state fit. For each lock on which a try was answered busy or a queue was listed, some order of
 * what happened explains every answer.
 */
import type { HistoryEvent } from "../history.ts";
import { linearize, type TimedOp } from "../linearize.ts";
import { lockModel, type LockOp } from "../lock-model.ts";
import { lockOps } from "../lock-ops.ts";
import type { LockTrace, Trace } from "../trace.ts";
import { quote } from "../words.ts";
import type { Check } from "./check.ts";

/** Searches each lock by itself; others cannot change what is seen of it. */
export const checkAnswers: Check = (trace, findings, { steps }) => {
  let looked = 0;
  for (const lock of trace.locks.values()) {
    if (lock.answers === 0 || lock.seized) continue;
    looked += lock.answers;
    const { verdict, stuck } = linearize(lockModel, lockOps(trace, lock), steps);
    if (verdict === "unknown") {
      findings.doubt(`A1: no order of what happened on ${quote(lock.name)} was found within ${steps} steps.`);
    } else if (verdict === "invalid" && stuck !== null) {
      findings.violate(explain(trace, lock, stuck), [trace.events[stuck.call], trace.events[stuck.end]]);
    }
  }
  return looked;
};

function explain(trace: Trace, lock: LockTrace, { op, end }: TimedOp<LockOp>): string {
  const event: HistoryEvent | undefined = trace.events[end];
  const who = quote(event?.proc ?? "");
  const name = quote(lock.name);
  switch (op.what) {
    case "refuse":
      return `${who} was told that ${name} is busy, but nobody can have held it or been ahead.`;
    case "list":
    case "nonsense":
      return `${who} was shown a queue of ${name} that it cannot have had.`;
    case "take":
    case "grant":
      return `${who} was granted ${name}, but somebody else must have been ahead.`;
    default:
      return `The ${event?.f ?? "call"} on ${name} by ${who} fits no order of what else happened.`;
  }
}
