/** Which file a path leads to. */
import { statSync } from "node:fs";

/** Tells one file from all others that there are, by whatever name; null if there is none. */
export function identityOf(path: string): string | null {
  const seen = statSync(path, { bigint: true, throwIfNoEntry: false });
  return seen === undefined ? null : `${seen.dev}:${seen.ino}`;
}
