/**
 * What a traced lock did, as ops for the search. Where the history leaves something open (did an unknown request join
 * the queue, when did an expired entry go) the op is optional, so that only what cannot be explained at all is refused.
 */
import type { TimedOp } from "./linearize.ts";
import type { LockOp, ModelEntry } from "./lock-model.ts";
import type { Attempt, LockTrace, Trace } from "./trace.ts";
import { firstAt } from "./validity.ts";

/** All ops of one lock. */
export function lockOps(trace: Trace, lock: LockTrace): TimedOp<LockOp>[] {
  const ops: TimedOp<LockOp>[] = [];
  const ranks = rankTokens(lock);
  let id = 0;
  for (const attempt of lock.attempts) {
    if (attempt.grant?.parent) continue;
    const entry = entryOf(attempt, id, ranks.get(attempt) ?? null);
    id += 1;
    ops.push(...requestOps(attempt, entry), ...departureOps(trace, attempt, entry));
    if (mayHaveExpiredWaiting(attempt)) {
      ops.push(...ghostOps(attempt, { ...entry, id, token: null, rank: null }));
      id += 1;
    }
  }
  for (const { invoke, end } of lock.queries) {
    if (end?.type !== "ok") continue;
    const op: LockOp = { what: "list", holders: end.holders ?? [], waiters: end.waiters ?? [] };
    ops.push({ op, call: invoke.i, end: end.i });
  }
  return ops;
}

function rankTokens(lock: LockTrace): ReadonlyMap<Attempt, number> {
  const numbered = lock.grants.flatMap(({ attempt, token }) =>
    token === undefined ? [] : [{ attempt, token }],
  );
  numbered.sort((a, b) => (a.token < b.token ? -1 : a.token > b.token ? 1 : 0));
  return new Map(numbered.map(({ attempt }, rank) => [attempt, rank]));
}

function entryOf({ call }: Attempt, id: number, rank: number | null): ModelEntry {
  const { invoke, end } = call;
  const permits = invoke.permits ?? end?.permits;
  return {
    id,
    kind: permits === undefined ? (invoke.mode ?? end?.mode ?? "exclusive") : "counted",
    weight: invoke.weight ?? end?.weight ?? 1,
    permits: permits ?? 1,
    token: end?.token ?? null,
    rank,
  };
}

function requestOps({ call }: Attempt, entry: ModelEntry): TimedOp<LockOp>[] {
  const { invoke, end } = call;
  const within = { call: invoke.i, end: end?.i ?? Infinity };
  if (end?.type === "ok") {
    if (invoke.f === "acquire") {
      return [
        { op: { what: "append", entry }, ...within },
        { op: { what: "grant", entry }, ...within },
      ];
    }
    return [{ op: { what: end.busy === true ? "refuse" : "take", entry }, ...within }];
  }
  // A try that surely was not done left nothing; a waiter that gave up may have stood in the queue.
  if (invoke.f === "try" && end?.type === "fail") return [];
  const deadline = end?.type === "fail" ? end.i : Infinity;
  return [{ op: { what: "append", entry }, call: invoke.i, end: deadline, optional: true }];
}

/** How an entry left: surely, by a release that was answered ok; otherwise perhaps. */
function departureOps(trace: Trace, attempt: Attempt, entry: ModelEntry): TimedOp<LockOp>[] {
  const op: LockOp = { what: "remove", entry };
  const { call, grant, leaver } = attempt;
  if (call.end?.busy === true) return [];
  const released = attempt.releases.find(({ end }) => end?.type === "ok");
  if (released?.end) return [{ op, call: released.invoke.i, end: released.end.i }];
  if (grant === null) return [{ op, call: call.invoke.i, end: Infinity }];
  // Told that it is gone before its time, the holder cannot say since when.
  const goneEarly = leaver?.f === "lost" || attempt.releases.some(({ end }) => end?.type === "fail");
  const { validUntil } = grant.proof;
  const from = goneEarly
    ? grant.ok.i
    : validUntil === undefined
      ? Infinity
      : firstAt(trace.events, validUntil);
  const unsure = attempt.releases.map(({ invoke }) => invoke.i);
  const start = Math.min(from, trace.kills.get(grant.proc) ?? Infinity, ...unsure);
  return start === Infinity ? [] : [{ op, call: start, end: Infinity }];
}

/** A waiter that was not renewed for its ttl is expired, and joins again at the tail. */
function mayHaveExpiredWaiting({ call }: Attempt): boolean {
  const { invoke, end } = call;
  if (invoke.f === "try" || invoke.ttl === undefined || end?.type !== "ok") return false;
  return end.t - invoke.t > BigInt(Math.floor(invoke.ttl * 1e6));
}

function ghostOps({ call }: Attempt, entry: ModelEntry): TimedOp<LockOp>[] {
  const { i } = call.invoke;
  return [
    { op: { what: "append", entry }, call: i, end: call.end?.i ?? Infinity, optional: true },
    { op: { what: "remove", entry }, call: i, end: Infinity },
  ];
}
