/**
 * L1: after the last fault was healed, each live waiter ends in time. L2: nothing is left behind. L3: every call ended. L4: what is
 * granted lasts.
 * What a killed process had under way is nobody's wait.
 */
import type { Call, Grant, Trace } from "../trace.ts";
import { holder, quote, span } from "../words.ts";
import type { Check, Findings } from "./check.ts";

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

/** How much of the ttl a grant is good for at least, counted from the request: a lease that is shared may be half used up. */
const leastLife = 0.6;

/** By how much a holder may hear too early that its time is over, in nanoseconds: clocks are read one after the other. */
const readingNs = 5_000_000n;

/** L4. What was stolen or evicted is lost by that; and a fault may cost a lock that was held while it lasted. */
export const checkLives: Check = (trace, findings) => {
  let looked = 0;
  for (const grant of trace.grants) {
    if (grant.parent !== null) continue;
    looked += 1;
    checkGiven(grant, findings);
    checkKept(trace, grant, findings);
  }
  return looked;
};

/**
 * An entry lives for a ttl from some moment after the invoke. But where an answer was lost, the holder may know only what was
 * left of that when it asked again, and counts it from before that question: then the way of the question is taken off
 * twice. How long that was is not recorded; it was no longer than from the invoke to the ok.
 */
function checkGiven(grant: Grant, findings: Findings): void {
  const { ok, attempt } = grant;
  const { invoke } = attempt.call;
  if (ok.validUntil === undefined || invoke.ttl === undefined) return;
  const life = ok.validUntil - invoke.t;
  if (Number(life + (ok.t - invoke.t)) >= leastLife * invoke.ttl * 1e6) return;
  findings.violate(
    `${holder(grant)} asked for ${quote(attempt.lock.name)} with a ttl of ${invoke.ttl} ms, and got ${span(life)}.`,
    [invoke, ok],
  );
}

function checkKept(trace: Trace, grant: Grant, findings: Findings): void {
  const { attempt, ok, proof, end, believedEnd } = grant;
  const { leaver, lock } = attempt;
  if (leaver?.f !== "lost" || end < believedEnd) return;
  const { validUntil } = proof;
  if (validUntil === undefined || leaver.t >= validUntil - readingNs) return;
  const met = trace.faults.some((fault) => fault.invoke.i < leaver.i && (fault.end?.i ?? Infinity) > ok.i);
  if (met) return;
  findings.violate(
    `${holder(grant)} lost ${quote(lock.name)} ${span(validUntil - leaver.t)} before its time, though nothing was broken.`,
    [ok, proof, leaver],
  );
}

function isLive(trace: Trace, { invoke, end }: Call): boolean {
  const killed = trace.kills.get(invoke.proc);
  return killed === undefined || (end !== null && end.i < killed);
}
