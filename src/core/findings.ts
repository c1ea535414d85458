/** Findings about a store as text; what they say is left to those who examine. */
import type { Finding } from "./backend.ts";

/** A finding in one line, with what to do. */
export function findingText({ about, seen, todo }: Finding): string {
  return todo === undefined ? `${about}: ${seen}` : `${about}: ${seen}. ${todo}`;
}
