/**
 * M6: who sees `held === true` is inside its validity interval, and nobody else was granted the lock since.
 */
import { firstFrom, type Grant, rootOf } from "../trace.ts";
import { handleEnd } from "../validity.ts";
import { holder, quote } from "../words.ts";
import type { Check } from "./check.ts";

/** Looks at every observation. After a theft or an eviction a holder may believe until it hears of it. */
export const checkHeld: Check = (trace, findings) => {
  for (const seen of trace.held) {
    const attempt = seen.attempt === undefined ? undefined : trace.attempts.get(seen.attempt);
    if (attempt === undefined) continue;
    const { grant, lock } = attempt;
    const saw = `${quote(seen.proc)} saw ${quote(lock.name)} as held`;
    if (grant === null || grant.ok.i > seen.i) {
      findings.violate(`${saw} by an attempt that was not granted.`, [attempt.call.invoke, seen]);
      continue;
    }
    if (seen.i >= handleEnd(grant)) {
      findings.violate(`${saw}, but the validity of ${holder(grant)} was over.`, [
        grant.ok,
        rootOf(grant).proof,
        attempt.leaver !== null && attempt.leaver.i < seen.i ? attempt.leaver : null,
        seen,
      ]);
      continue;
    }
    const root = rootOf(grant);
    const other = lastValidBefore(lock.exclusive, seen.i);
    if (other === undefined || other === root || other.steal || other.ok.i < root.ok.i) continue;
    if (root.end < root.believedEnd) continue;
    findings.violate(`${saw} by ${holder(grant)}, though ${holder(other)} had been granted it since.`, [
      root.ok,
      root.proof,
      other.ok,
      seen,
    ]);
  }
  return trace.held.length;
};

/** The last grant before a position that was ever valid: one that was stolen on its way came too late to count. */
function lastValidBefore(grants: readonly Grant[], position: number): Grant | undefined {
  let at = firstFrom(grants, position) - 1;
  for (let grant = grants[at]; grant !== undefined && grant.end <= grant.ok.i; grant = grants[at]) at -= 1;
  return grants[at];
}
