/** Makes folders; what is in them is left to others. */
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a folder, and those above it where they are missing; gives the first that is new. Node's own way tries for ever where
 * a system says that something is missing although the folder above is there, as it does below /proc.
 */
export function makeFolders(path: string, mode?: number): string | undefined {
  const folder = resolve(path);
  const above = dirname(folder);
  try {
    return make(folder, mode);
  } catch (error) {
    if (!hasCode(error, "ENOENT") || above === folder) throw error;
  }
  const first = makeFolders(above, mode);
  const last = make(folder, mode);
  return first ?? last;
}

/** Gives the folder if it is new. */
function make(folder: string, mode: number | undefined): string | undefined {
  try {
    mkdirSync(folder, mode);
    return folder;
  } catch (error) {
    if (hasCode(error, "EEXIST") && statSync(folder).isDirectory()) return undefined;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
