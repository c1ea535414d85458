/**
 * M1: validity intervals of one lock do not conflict. Writers overlap nobody, readers only readers, and counted holders
 * never weigh more than the permits.
 */
import { Heap, type Timed } from "../../core/heap.ts";
import type { Grant, LockTrace, Trace } from "../trace.ts";
import { endTime } from "../validity.ts";
import { holder, quote, span } from "../words.ts";
import type { Check, Findings } from "./check.ts";

/** One who holds, in a heap in which the one that names the most permits comes first. */
interface Holding extends Timed {
  readonly grant: Grant;
}

/** Sweeps the grants of each lock in the order of their ok. */
export const checkExclusion: Check = (trace, findings) => {
  let looked = 0;
  for (const lock of trace.locks.values()) {
    sweepConflicts(trace, lock, findings);
    const counted = lock.grants.filter(({ kind, ok, end }) => kind === "counted" && end > ok.i);
    if (counted.length > 0) sweepPermits(lock, counted, findings);
    looked += lock.grants.length;
  }
  return looked;
};

/** Of each kind only the grant that ends last can still be in the way. */
function sweepConflicts(trace: Trace, lock: LockTrace, findings: Findings): void {
  const last: Record<Grant["kind"], Grant | null> = { exclusive: null, shared: null, counted: null };
  for (const grant of lock.grants) {
    if (grant.end <= grant.ok.i) continue;
    const rivals =
      grant.kind === "exclusive"
        ? [last.exclusive, last.shared, last.counted]
        : [last.exclusive, grant.kind === "shared" ? last.counted : last.shared];
    const rival = rivals.find((other) => other !== null && other.end > grant.ok.i);
    if (rival !== undefined && rival !== null) reportOverlap(trace, lock, rival, grant, findings);
    if (grant.end > (last[grant.kind]?.end ?? -1)) last[grant.kind] = grant;
  }
}

function reportOverlap(trace: Trace, lock: LockTrace, a: Grant, b: Grant, findings: Findings): void {
  const [endA, endB] = [endTime(trace, a), endTime(trace, b)];
  const both = (endA < endB ? endA : endB) - b.ok.t;
  const how = a.kind === b.kind ? a.kind : `${a.kind} and ${b.kind}`;
  findings.violate(
    `${quote(lock.name)} was held (${how}) by ${holder(a)} and ${holder(b)} at the same time, for ${span(both)}.`,
    [a.ok, a.proof, b.ok],
  );
}

function sweepPermits(lock: LockTrace, counted: readonly Grant[], findings: Findings): void {
  // Entries may name different permits; the last in the queue saw all the others, so the largest number bounds them.
  const active = new Heap<Holding>();
  const holdings = counted.map((grant): Holding => ({ grant, dueAt: -grant.permits, slot: 0 }));
  const byEnd = holdings.toSorted((a, b) => a.grant.end - b.grant.end);
  let weight = 0;
  let ended = 0;
  for (const holding of holdings) {
    const { grant } = holding;
    // What ended by now has begun before, so its weight was added.
    for (let next = byEnd[ended]; next !== undefined && next.grant.end <= grant.ok.i; next = byEnd[ended]) {
      weight -= next.grant.weight;
      active.remove(next);
      ended += 1;
    }
    weight += grant.weight;
    active.add(holding);
    const permits = -(active.first?.dueAt ?? 0);
    if (weight > permits) reportOverweight(lock, active.items(), permits, findings);
  }
}

function reportOverweight(
  lock: LockTrace,
  active: readonly Holding[],
  permits: number,
  findings: Findings,
): void {
  const heaviest: Grant[] = [];
  let weight = 0;
  const grants = active.map(({ grant }) => grant).toSorted((a, b) => b.weight - a.weight || a.ok.i - b.ok.i);
  for (const grant of grants) {
    if (weight > permits) break;
    heaviest.push(grant);
    weight += grant.weight;
  }
  findings.violate(
    `${quote(lock.name)} has ${permits} permits, but ${heaviest.map(holder).join(", ")} held ${weight} at the same time.`,
    heaviest.flatMap(({ ok, proof }) => [ok, proof]),
  );
}
