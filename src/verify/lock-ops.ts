/**
 * What a traced lock did, as ops for the search. Requests that were granted are searched for; one that failed or whose
 * outcome is unknown may have stood in the queue unseen, for a stretch of time that is worked out here, and what such a
 * stranger can explain is not asked of the search at all. So only what nothing can explain is refused.
 */
import type { TimedOp } from "./linearize.ts";
import type { LockOp, ModelEntry } from "./lock-model.ts";
import {
  compareTokens,
  type Attempt,
  type Call,
  type GrantKind,
  type LockTrace,
  type Trace,
} from "./trace.ts";
import { firstAt } from "./validity.ts";

/** A request that may have been in the queue at any moment from `from` to `until`. */
interface Stranger {
  readonly kind: GrantKind;
  readonly from: number;
  readonly until: number;
}

/** All ops of one lock. */
export function lockOps(trace: Trace, lock: LockTrace): TimedOp<LockOp>[] {
  const strangers = findStrangers(lock);
  const byToken = new Map<bigint, ModelEntry>();
  const joined = new Map<Attempt, TimedOp<LockOp>>();
  const ops: TimedOp<LockOp>[] = [];
  // Tokens grow along the queue, so entries join it in that order.
  let before: TimedOp<LockOp> | undefined;
  for (const grant of lock.grants.toSorted((a, b) => compareTokens(a.token, b.token))) {
    const { attempt, token } = grant;
    const entry = entryOf(trace, attempt, joined.size);
    const during = { call: attempt.call.invoke.i, end: grant.ok.i };
    const what = attempt.call.invoke.f === "try" ? "take" : "append";
    const join: TimedOp<LockOp> = {
      op: { what, entry },
      ...during,
      after: token === undefined ? undefined : before,
    };
    ops.push(join);
    if (what === "append") ops.push({ op: { what: "grant", entry }, ...during, after: join });
    const left = releasedOk(attempt);
    if (left?.end)
      ops.push({ op: { what: "remove", entry }, call: left.invoke.i, end: left.end.i, after: join });
    joined.set(attempt, join);
    if (token === undefined) continue;
    byToken.set(token, entry);
    before = join;
  }
  for (const attempt of lock.attempts) {
    const { invoke, end } = attempt.call;
    if (end?.busy !== true) continue;
    const entry = entryOf(trace, attempt, -1);
    const during = { call: invoke.i, end: end.i };
    const explained = strangers.some((stranger) => overlaps(stranger, during) && blocks(stranger, entry));
    if (!explained) ops.push({ op: { what: "refuse", entry }, ...during });
  }
  const numbered = lock.grants.every(({ token }) => token !== undefined);
  for (const query of lock.queries) {
    const op = numbered ? listOp(query, byToken, strangers) : null;
    if (op !== null) ops.push(op);
  }
  return ops;
}

function entryOf(trace: Trace, attempt: Attempt, id: number): ModelEntry {
  const { invoke, end } = attempt.call;
  return {
    id,
    kind: kindOf(attempt.call),
    weight: invoke.weight ?? end?.weight ?? 1,
    permits: invoke.permits ?? end?.permits ?? 1,
    token: end?.token ?? null,
    expires: expiryOf(trace, attempt),
  };
}

/** From when on an entry may be gone although nobody was told that it left. */
function expiryOf(trace: Trace, attempt: Attempt): number {
  const { grant, leaver, releases } = attempt;
  if (grant === null || releasedOk(attempt) !== undefined) return Infinity;
  // Told that it is gone before its time, the holder cannot say since when.
  if (leaver?.f === "lost" || releases.some(({ end }) => end?.type === "fail")) return grant.ok.i;
  const { validUntil } = grant.proof;
  const expired = validUntil === undefined ? Infinity : firstAt(trace.events, validUntil);
  return Math.min(
    expired,
    trace.kills.get(grant.proc) ?? Infinity,
    ...releases.map(({ invoke }) => invoke.i),
  );
}

/**
 * The requests that were not granted, and the earlier entries of those that waited longer than their ttl: such an entry
 * may have expired, and the request joined again at the tail.
 */
function findStrangers(lock: LockTrace): Stranger[] {
  const passed = passedBy(lock);
  return lock.attempts.flatMap((attempt, at): Stranger[] => {
    const { call } = attempt;
    const { invoke, end } = call;
    const kind = kindOf(call);
    if (end?.type === "ok") {
      const ttl = invoke.ttl === undefined ? null : BigInt(Math.floor(invoke.ttl * 1e6));
      const rejoined = invoke.f === "acquire" && ttl !== null && end.t - invoke.t > ttl;
      return rejoined ? [{ kind, from: invoke.i, until: end.i }] : [];
    }
    // A try that surely was not done left nothing; a waiter that gave up may have stood in the queue until then.
    if (end?.type === "fail" && invoke.f === "try") return [];
    const left = releasedOk(attempt)?.end?.i ?? Infinity;
    const until = end?.type === "fail" ? Math.min(left, passed(at, end.i)) : left;
    return [{ kind, from: invoke.i, until }];
  });
}

/**
 * Gives, for a request that joined no later than at a position, when it was surely gone: an exclusive request that was
 * made after that position can only have been granted behind it once it had left.
 */
function passedBy(lock: LockTrace): (attempt: number, joined: number) => number {
  const { attempts } = lock;
  const firstGrant: number[] = Array.from({ length: attempts.length + 1 }, () => Infinity);
  for (let at = attempts.length - 1; at >= 0; at -= 1) {
    const grant = attempts[at]?.grant;
    const granted = grant?.kind === "exclusive" && grant.parent === null ? grant.ok.i : Infinity;
    firstGrant[at] = Math.min(firstGrant[at + 1] ?? Infinity, granted);
  }
  return (attempt, joined) => {
    let low = attempt;
    let high = attempts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((attempts[middle]?.call.invoke.i ?? Infinity) <= joined) low = middle + 1;
      else high = middle;
    }
    return firstGrant[low] ?? Infinity;
  };
}

/** A listing as the search sees it; null where strangers leave too much open. */
function listOp(
  { invoke, end }: Call,
  byToken: ReadonlyMap<bigint, ModelEntry>,
  strangers: readonly Stranger[],
): TimedOp<LockOp> | null {
  if (end?.type !== "ok") return null;
  const during = { call: invoke.i, end: end.i };
  const holders = end.holders ?? [];
  const waiters = end.waiters ?? [];
  const strange = [...holders, ...waiters].filter((token) => !byToken.has(token));
  const [firstHolder, firstWaiter] = [holders[0], waiters[0]];
  // The head of a queue always holds.
  const headHolds = firstWaiter === undefined || (firstHolder !== undefined && firstHolder < firstWaiter);
  const sound = headHolds && isAscending(holders) && isAscending(waiters);
  if (!sound || strange.length > strangers.filter((stranger) => overlaps(stranger, during)).length) {
    return { op: { what: "nonsense" }, ...during };
  }
  const known = (tokens: readonly bigint[]): Set<ModelEntry> =>
    new Set(tokens.flatMap((token) => byToken.get(token) ?? []));
  const behind = [...known(waiters)].filter((entry) => strange.some((token) => token < (entry.token ?? 0n)));
  const op: LockOp = {
    what: "list",
    holders: known(holders),
    waiters: known(waiters),
    behindStrangers: new Set(behind),
  };
  return { op, ...during };
}

function releasedOk({ releases }: Attempt): Call | undefined {
  return releases.find(({ end }) => end?.type === "ok");
}

function kindOf({ invoke, end }: Call): GrantKind {
  if ((invoke.permits ?? end?.permits) !== undefined) return "counted";
  return invoke.mode ?? end?.mode ?? "exclusive";
}

function blocks(stranger: Stranger, entry: ModelEntry): boolean {
  return entry.kind !== "shared" || stranger.kind !== "shared";
}

function overlaps(
  stranger: Stranger,
  { call, end }: { readonly call: number; readonly end: number },
): boolean {
  return stranger.from < end && stranger.until > call;
}

function isAscending(tokens: readonly bigint[]): boolean {
  return tokens.every((token, at) => at === 0 || (tokens[at - 1] ?? 0n) < token);
}
