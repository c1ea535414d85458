/** What each invariant means, in a few words: for tables and reports. */
import type { Invariant } from "./checks/check.ts";

/** The claims by their ids. */
export const MEANINGS: Readonly<Record<Invariant, string>> = {
  M1: "No two conflicting holders at once",
  M2: "Tokens are distinct and grow",
  M3: "The resource accepts no stale write",
  M4: "No acknowledged write is lost",
  M5: "Re-entry keeps its token; only the owner releases",
  M6: "Held means held",
  F1: "Nobody is overtaken",
  L1: "Waiters are served once faults are healed",
  L2: "Nothing is left behind",
  L3: "Every call ended",
  L4: "What is granted lasts",
  A1: "Answers about state are true",
};
