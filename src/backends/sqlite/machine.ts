/** What the processes of one machine have in common: a clock that runs from boot to boot, and who of them is alive. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

/** What the store asks of the machine; replaced in tests. */
export interface Machine {
  /** Names this run of the machine; null where the system does not tell. */
  readonly bootId: string | null;
  /** Whole microseconds by the monotonic clock that all processes share; starts anew with each boot. */
  nowUs(): number;
  /** Milliseconds since 1970. */
  wallMs(): number;
}

/** The machine that this process runs on. */
export function thisMachine(): Machine {
  // In a time namespace the monotonic clock is shifted; the others, outside, do not see that shift.
  const shiftUs = monotonicShiftUs();
  return {
    bootId: readBootId(),
    nowUs: () => {
      const [seconds, nanoseconds] = process.hrtime();
      return seconds * 1e6 + Math.floor(nanoseconds / 1e3) - shiftUs;
    },
    wallMs: () => Date.now(),
  };
}

function readBootId(): string | null {
  if (process.platform === "linux") {
    const file = "/proc/sys/kernel/random/boot_id";
    // Some containers (of systemd-nspawn and LXC) have a name of their own put over that of the boot, which they share with others.
    if (readOrNull("/proc/self/mountinfo")?.includes(` ${file} `)) return null;
    return readOrNull(file)?.trim() ?? null;
  }
  if (process.platform !== "darwin") return null;
  try {
    return execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" }).trim();
  } catch {
    return null;
  }
}

function monotonicShiftUs(): number {
  const [, seconds = "0", nanoseconds = "0"] =
    /^monotonic\s+(-?\d+)\s+(-?\d+)/m.exec(readOrNull("/proc/self/timens_offsets") ?? "") ?? [];
  return Number(seconds) * 1e6 + Math.floor(Number(nanoseconds) / 1e3);
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/**
 * A name for one thread of this process among all of this boot: pid, start, pid namespace, and chance, since a process
 * may have several threads. From the name others can tell whether the process still lives.
 */
export function nameOfThisProcess(): string {
  const start = startOf(process.pid);
  const parts = [process.pid, typeof start === "number" ? start : 0, pidNamespace()];
  return [...parts.map((part) => part.toString(36)), randomBytes(3).toString("hex")].join(".");
}

/** Whether a process is gone for certain. One in another pid namespace, or that cannot be seen, may be alive. */
export function isGone(name: string): boolean {
  const [pid = 0, start = 0, namespace = 0] = name.split(".", 3).map((part) => Number.parseInt(part, 36));
  if (!(pid > 0) || namespace !== pidNamespace()) return false;
  const now = startOf(pid);
  if (now === "ended") return true;
  // Another start: the pid was given to another process since.
  if (typeof now === "number") return start !== 0 && now !== start;
  return !answers(pid);
}

/** Whether a process with this pid exists, as far as signals tell. */
function answers(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

/** When a process was started, in clock ticks since the boot; "ended" if it waits to be reaped; null if it cannot be seen. */
function startOf(pid: number): number | "ended" | null {
  if (!seesOwnProcesses()) return null;
  // The name of the program stands in parentheses and may contain anything.
  const fields = readOrNull(`/proc/${pid}/stat`)
    ?.replace(/^.*\)\s/s, "")
    .split(" ");
  if (fields === undefined) return null;
  return fields[0] === "Z" || fields[0] === "X" ? "ended" : Number(fields[19]);
}

let ownProcesses: boolean | undefined;

/** Whether /proc is that of our pid namespace: in another one the same pid is another process. */
function seesOwnProcesses(): boolean {
  if (ownProcesses === undefined) {
    try {
      ownProcesses = readlinkSync("/proc/self") === String(process.pid);
    } catch {
      ownProcesses = false;
    }
  }
  return ownProcesses;
}

let namespaceSeen: number | undefined;

/** The inode of the pid namespace; 0 where there are none. */
function pidNamespace(): number {
  if (namespaceSeen === undefined) {
    try {
      namespaceSeen = Number(/\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? 0);
    } catch {
      namespaceSeen = 0;
    }
  }
  return namespaceSeen;
}
