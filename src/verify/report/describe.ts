/** The lines that appear when somebody points at something in the report. Plain text; escaped where it is drawn. */
import type { HistoryEvent } from "../history.ts";
import { rootOf, type Attempt, type Call } from "../trace.ts";
import { span } from "../words.ts";

/** A request, from asking to the end of its validity. */
export function describeAttempt(attempt: Attempt, origin: bigint, until: bigint): string {
  const { call, grant, lock, leaver } = attempt;
  const { invoke, end } = call;
  const lines = [`${invoke.proc} · ${lock.name}`, `attempt ${attempt.id}`];
  if (grant === null) {
    const how = end === null ? "never answered" : end.busy === true ? "busy" : OUTCOMES[end.type];
    lines.push(`${invoke.f} ${since(invoke, origin)}: ${how}${end === null ? "" : ` ${since(end, origin)}`}`);
    return [...lines, ...detail(end)].join("\n");
  }
  lines.push(`${grant.kind}${grant.kind === "counted" ? ` ${grant.weight} of ${grant.permits}` : ""}`);
  if (grant.token !== undefined) lines.push(`token ${grant.token}`);
  if (grant.parent !== null) lines.push(`nested in ${grant.parent.id}`);
  lines.push(
    `asked ${since(invoke, origin)}, granted ${since(grant.ok, origin)} (waited ${span(grant.ok.t - invoke.t)})`,
  );
  const { proof, closer } = rootOf(grant);
  if (proof !== grant.ok && grant.parent === null) lines.push(`last renewed ${since(proof, origin)}`);
  const ending = leaver ?? closer;
  const why = ending !== null && ending.t <= until ? (ending.f === "lost" ? "lost" : "released") : "over";
  lines.push(`${why} +${span(until - origin)} (valid for ${span(until - grant.ok.t)})`);
  return [...lines, ...detail(grant.ok)].join("\n");
}

/** Anything that has no length. */
export function describeEvent(event: HistoryEvent, origin: bigint): string {
  const { f, type, proc, token, attempt, holders, waiters } = event;
  const lines = [`${proc} · ${event.resource ?? event.lock ?? attempt ?? ""}`];
  if (f === "guard") lines.push(`write ${type === "ok" ? "accepted" : "refused"} ${since(event, origin)}`);
  else lines.push(`${f} ${since(event, origin)}`);
  if (token !== undefined) lines.push(`token ${token}`);
  if (event.validUntil !== undefined) lines.push(`valid until +${span(event.validUntil - origin)}`);
  if (holders !== undefined) lines.push(`holders ${holders.join(", ") || "none"}`);
  if (waiters !== undefined) lines.push(`waiters ${waiters.join(", ") || "none"}`);
  return [...lines, ...detail(event)].join("\n");
}

/** A fault, from its start to its end. */
export function describeFault({ invoke, end }: Call, origin: bigint): string {
  const lines = [`${invoke.fault ?? "fault"} ${invoke.target ?? ""}`.trim(), since(invoke, origin)];
  if (end === null) lines.push("never healed");
  else if (end !== invoke) lines.push(`healed ${since(end, origin)} (after ${span(end.t - invoke.t)})`);
  return [...lines, ...detail(invoke)].join("\n");
}

const OUTCOMES = { ok: "granted", fail: "failed", info: "outcome unknown", invoke: "asked" } as const;

function since(event: HistoryEvent, origin: bigint): string {
  return `+${span(event.t - origin)}`;
}

function detail(event: HistoryEvent | null): string[] {
  return event?.detail === undefined ? [] : [event.detail];
}
