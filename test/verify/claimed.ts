/** Which invariants the golden histories are judged by. */
import { INVARIANTS } from "../../src/verify/checker.ts";
import type { Invariant } from "../../src/verify/checks/check.ts";

/** All of them, so that a good one is good in every respect; but whether a lock may be lost is said by those about L4 only. */
export function claimedBy(name: string): readonly Invariant[] {
  return INVARIANTS.filter((invariant) => invariant !== "L4" || name.startsWith("L4"));
}
