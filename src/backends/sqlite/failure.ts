/** What the errors of SQLite mean for a lock: which code, and what people should do; nothing is decided by their texts. */
import { LockError } from "../../core/errors.ts";

/** Primary result codes of SQLite that are told apart here. */
const codes = {
  SQLITE_PERM: 3,
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_CANTOPEN: 14,
  SQLITE_PROTOCOL: 15,
  SQLITE_NOTADB: 26,
} as const;

type Code = keyof typeof codes;

/** For each code: what it says of the file, and what to do. */
const advice: Readonly<Partial<Record<Code, readonly [seen: string, todo: string]>>> = {
  SQLITE_PERM: ["may not be used", "check the permissions of the file and its directory"],
  SQLITE_READONLY: ["cannot be written", "check the permissions of the file and its directory"],
  SQLITE_IOERR: ["could not be read or written", "check the disk, then run `holdfast doctor`"],
  SQLITE_CORRUPT: [
    "is damaged",
    "stop all who use it and delete it: locks are only kept while they are held",
  ],
  SQLITE_FULL: ["could not grow: the disk is full", "free some space"],
  SQLITE_CANTOPEN: ["cannot be opened", "check that its directory exists and can be written"],
  SQLITE_NOTADB: ["is not a SQLite database", "give another path, or move the file away"],
};

/** The primary code of a driver's error: each driver says it in its own way. */
function codeOf(error: unknown): Code | undefined {
  if (!(error instanceof Error)) return undefined;
  const number: unknown = Reflect.get(error, "errcode") ?? Reflect.get(error, "rawCode");
  const text: unknown = Reflect.get(error, "code");
  return Object.keys(codes)
    .filter(isCode)
    .find((code) =>
      typeof number === "number"
        ? (number & 0xff) === codes[code]
        : text === code || (typeof text === "string" && text.startsWith(`${code}_`)),
    );
}

function isCode(name: string): name is Code {
  return name in codes;
}

/** Whether another connection is writing just now: nothing has happened, and it may be tried again. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code === "SQLITE_BUSY" || code === "SQLITE_LOCKED" || code === "SQLITE_PROTOCOL";
}

/**
 * An error of the driver as a LockError. A transaction that failed was rolled back, so what was asked surely did not
 * happen; of an error that nobody knows that cannot be said.
 */
export function failureOf(error: unknown, path: string): LockError {
  if (error instanceof LockError) return error;
  const code = codeOf(error);
  const known = code === undefined ? undefined : advice[code];
  const details = { backend: "sqlite", cause: error };
  const text = error instanceof Error ? error.message : String(error);
  if (known !== undefined) {
    const kind = code === "SQLITE_NOTADB" ? "LOCK_UNSUPPORTED" : "LOCK_UNAVAILABLE";
    return new LockError(kind, `the file ${path} ${known[0]} (${text}): ${known[1]}`, details);
  }
  return new LockError("LOCK_OUTCOME_UNKNOWN", `the file ${path} failed: ${text}`, details);
}

/** A refusal of a file, with what was seen and what to do. */
export function refusal(
  code: "LOCK_UNSUPPORTED" | "LOCK_UNAVAILABLE",
  text: string,
  cause?: unknown,
): LockError {
  return new LockError(code, text, { backend: "sqlite", cause });
}
