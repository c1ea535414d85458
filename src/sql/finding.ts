/** A finding of `holdfast doctor` about a SQL database, in one line. */
import type { Finding } from "../core/backend.ts";

/** Good, or otherwise a warning or a problem with what to do about it. */
export function finding(
  isGood: boolean,
  otherwise: "warning" | "problem",
  about: string,
  seen: string,
  todo: string,
): Finding {
  return isGood ? { level: "ok", about, seen } : { level: otherwise, about, seen, todo };
}
