/** What is said of a file that stays busy: who is writing, and whether that process stands still in the middle of it. */
import { readFileSync, statSync } from "node:fs";
import type { LockError } from "../../core/errors.ts";
import { refusal } from "./failure.ts";

/** Where SQLite locks the index of its log while it writes. */
const writeLockAt = 120;

/** The error for whoever has tried for so long. Nothing was done. */
export function tooBusy(path: string, patienceMs: number, cause: unknown): LockError {
  const text = `the file ${path} is busy: others have been writing for ${patienceMs} ms, and nothing was done`;
  const pid = writerOf(path);
  if (pid === null) return refusal("LOCK_UNAVAILABLE", `${text}; try again`, cause);
  if (!isStopped(pid)) return refusal("LOCK_UNAVAILABLE", `${text}; now it is pid ${pid}; try again`, cause);
  const todo = `let it go on (kill -CONT ${pid}) or end it`;
  return refusal(
    "LOCK_UNAVAILABLE",
    `${text}: pid ${pid} was stopped in the middle of a write, and keeps all others out; ${todo}`,
    cause,
  );
}

/** The process that is writing now; null where the system does not tell. */
function writerOf(path: string): number | null {
  try {
    const inode = `:${statSync(`${path}-shm`).ino}`;
    for (const line of readFileSync("/proc/locks", "utf8").split("\n")) {
      const [, kind, , mode, pid, file, from, to] = line.split(/\s+/);
      const covers = Number(from) <= writeLockAt && (to === "EOF" || Number(to) >= writeLockAt);
      if (kind === "POSIX" && mode === "WRITE" && file?.endsWith(inode) && covers && Number(pid) > 0)
        return Number(pid);
    }
  } catch {
    // Not on this system, or not for us.
  }
  return null;
}

/** Whether a process was stopped, by a signal or a debugger. */
function isStopped(pid: number): boolean {
  try {
    return /^State:\s+[Tt]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
