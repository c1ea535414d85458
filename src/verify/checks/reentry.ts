/**
 * M5: re-entry and ownership. A nested entry happens while its parent holds, on the same lock, for the same owner and
 * with the same token; a release is answered ok only to the owner, once, and only while its entry can still be there.
 */
import type { Attempt, Call, Grant } from "../trace.ts";
import { firstFrom, isOwner } from "../trace.ts";
import { handleEnd } from "../validity.ts";
import { holder, quote } from "../words.ts";
import type { Check, Findings } from "./check.ts";

/** Looks at every nested entry and every release. */
export const checkReentry: Check = (trace, findings) => {
  let looked = 0;
  for (const grant of trace.grants) {
    if (grant.parent === null) continue;
    looked += 1;
    checkNested(grant, grant.parent, findings);
  }
  for (const attempt of trace.attempts.values()) {
    let before: Call | null = null;
    for (const release of attempt.releases) {
      looked += 1;
      if (release.end?.type !== "ok") continue;
      if (before === null) checkRelease(attempt, release, findings);
      else {
        findings.violate(`Attempt ${quote(attempt.id)} on ${quote(attempt.lock.name)} was released twice.`, [
          before.end,
          release.invoke,
          release.end,
        ]);
      }
      before = release;
    }
  }
  return looked;
};

function checkNested(grant: Grant, parent: Attempt, findings: Findings): void {
  const { attempt, ok } = grant;
  const outer = parent.grant;
  const entered = `${holder(grant)} entered ${quote(attempt.lock.name)}`;
  if (outer === null || outer.ok.i > ok.i) {
    findings.violate(`${entered} on the strength of ${quote(parent.id)}, which was not granted.`, [
      parent.call.invoke,
      ok,
    ]);
  } else if (parent.lock !== attempt.lock || parent.owner !== attempt.owner) {
    findings.violate(
      `${entered} on the strength of ${holder(outer)}, which is another lock or another owner's.`,
      [outer.ok, ok],
    );
  } else if (outer.token !== grant.token) {
    findings.violate(`${entered} inside ${holder(outer)}, but with another token.`, [outer.ok, ok]);
  } else if (ok.i >= handleEnd(outer)) {
    findings.violate(`${entered} by a nested request, but the hold it entered was over.`, [
      outer.ok,
      outer.proof,
      parent.leaver,
      ok,
    ]);
  }
}

function checkRelease(attempt: Attempt, release: Call, findings: Findings): void {
  const { grant, lock } = attempt;
  if (!isOwner(attempt, release.invoke)) {
    findings.violate(
      `${quote(release.invoke.proc)} released ${quote(lock.name)}, which ${quote(attempt.call.invoke.proc)} had asked for.`,
      [attempt.call.end ?? attempt.call.invoke, release.invoke, release.end],
    );
    return;
  }
  const successor = grant === null ? null : findSuccessor(grant, release);
  if (grant === null || successor === null) return;
  findings.violate(
    `${holder(grant)} was told that it released ${quote(lock.name)}, though ${holder(successor)} had it by then.`,
    [grant.ok, grant.proof, successor.ok, release.invoke, release.end],
  );
}

/** A grant that can only have been given once this one's entry was gone, and was given before the release began. */
function findSuccessor(grant: Grant, release: Call): Grant | null {
  if (grant.parent !== null || grant.kind === "counted" || grant.end >= release.invoke.i) return null;
  const { lock } = grant.attempt;
  const others = grant.kind === "exclusive" ? lock.grants : lock.exclusive;
  for (let at = firstFrom(others, Math.max(grant.end, grant.ok.i + 1)); ; at += 1) {
    const other = others[at];
    if (other === undefined || other.ok.i > release.invoke.i) return null;
    const later = grant.token === undefined || other.token === undefined || other.token > grant.token;
    if (later && other.kind !== "counted") return other;
  }
}
