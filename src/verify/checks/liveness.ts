/**
 * L1: after the last fault was healed, each live waiter ends in time. L2: nothing is left behind. L3: every call ended. L4: nobody
 * loses a lock while nothing is broken.
 * What a killed process had under way is nobody's wait.
 */
import type { Call, Trace } from "../trace.ts";
import { quote, span } from "../words.ts";
import type { Check } from "./check.ts";

/** L1. Where a fault is never healed nothing is claimed, and nothing looked at. */
export const checkWaits: Check = (trace, findings, { wait }) => {
  if (trace.faults.some(({ end }) => end === null)) return 0;
  const healed = trace.faults.reduce<bigint | null>((last, { end }) => {
    return end !== null && (last === null || end.t > last) ? end.t : last;
  }, null);
  const over = trace.events.at(-1)?.t ?? 0n;
  let looked = 0;
  for (const { call } of trace.attempts.values()) {
    const { invoke, end } = call;
    if (!isLive(trace, call) || (healed !== null && end !== null && end.t <= healed)) continue;
    looked += 1;
    const since = healed !== null && healed > invoke.t ? healed : invoke.t;
    const waited = (end?.t ?? over) - since;
    if (waited <= wait) continue;
    const what = `${quote(invoke.proc)} waited ${span(waited)} for ${quote(invoke.lock ?? "")}`;
    const after = healed !== null && healed > invoke.t ? " after the last fault was healed" : "";
    findings.violate(`${what}${after}, longer than the ${span(wait)} allowed.`, [
      invoke,
      after === "" ? null : trace.faults.findLast((fault) => fault.end?.t === healed)?.end,
      end ?? trace.events.at(-1),
    ]);
  }
  return looked;
};

/** L2. */
export const checkLeaks: Check = (trace, findings) => {
  const counted = trace.ends.filter(({ leaks }) => leaks !== undefined);
  if (counted.length === 0) findings.doubt("L2: no end event says what was left behind.");
  for (const end of counted) {
    const left = Object.entries(end.leaks ?? {}).filter(([, count]) => count !== 0);
    if (left.length === 0) continue;
    const what = left.map(([kind, count]) => `${count} ${quote(kind)}`).join(", ");
    findings.violate(`${quote(end.proc)} left something behind: ${what}.`, [end]);
  }
  return counted.length;
};

/** L3. */
export const checkEnded: Check = (trace, findings) => {
  for (const call of trace.open) {
    if (!isLive(trace, call)) continue;
    const { f, proc, attempt } = call.invoke;
    const lock =
      call.invoke.lock ?? (attempt === undefined ? undefined : trace.attempts.get(attempt)?.lock.name);
    const about = lock === undefined ? "" : ` on ${quote(lock)}`;
    findings.violate(`The ${f}${about} by ${quote(proc)} never ended.`, [call.invoke]);
  }
  for (const end of trace.ends) {
    if ((end.pending ?? 0) === 0) continue;
    findings.violate(`${quote(end.proc)} ended while ${end.pending} of its calls had not settled.`, [end]);
  }
  return trace.events.reduce(
    (calls, { type, f }) => (type === "invoke" && f !== "fault" ? calls + 1 : calls),
    0,
  );
};

/** L4. What was stolen or evicted is lost by that; what a fault brings comes after it has begun. */
export const checkLosses: Check = (trace, findings) => {
  const broken = trace.faults.reduce((first, { invoke }) => Math.min(first, invoke.i), Infinity);
  let looked = 0;
  for (const { attempt, parent, ok, end, believedEnd } of trace.grants) {
    if (ok.i > broken || parent !== null) continue;
    looked += 1;
    const { leaver, lock } = attempt;
    if (leaver?.f !== "lost" || leaver.i > broken || end < believedEnd) continue;
    findings.violate(
      `${quote(leaver.proc)} lost ${quote(lock.name)} ${span(leaver.t - ok.t)} after it was granted, though nothing was broken.`,
      [ok, leaver],
    );
  }
  return looked;
};

function isLive(trace: Trace, { invoke, end }: Call): boolean {
  const killed = trace.kills.get(invoke.proc);
  return killed === undefined || (end !== null && end.i < killed);
}
