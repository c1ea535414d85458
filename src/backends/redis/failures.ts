/** Errors of Redis and of its client libraries as LockErrors: what surely did not happen, and what may have. */
import { LockError, type LockErrorCode } from "../../core/errors.ts";
import { nameOfQueue } from "../../core/names.ts";
import type { PlacedKeys } from "./keys.ts";
import { property } from "./link.ts";

const foreignKey = "somebody else uses keys with this prefix: give another prefix";

/** Replies that say that a command was not executed: the first word, and what to do. */
const refusals: Readonly<Record<string, string>> = {
  READONLY:
    "the server is a replica: connect to its primary, or by redis+sentinel:// or redis+cluster://, which follow it",
  LOADING: "the server is loading its data after a start: try again",
  MASTERDOWN: "the server is a replica that has lost its primary: try again when a fail-over is done",
  NOSCRIPT: "the server does not keep scripts",
  NOAUTH: "the server wants a password: give it in the URL or to the client",
  WRONGPASS: "user or password is wrong: look at the URL or at the client's options",
  NOPERM:
    "the user may not do this: the page of this backend under docs/backends has the ACL line that it needs",
  OOM: "the server has reached maxmemory: give it more, or free some; renewals and releases still work",
  BUSY: "the server is busy with somebody's script: wait, or end that with SCRIPT KILL",
  CLUSTERDOWN: "the cluster does not serve all slots: look at CLUSTER INFO",
  MOVED: "the slot has moved and the client has not followed: look at the cluster's topology",
  ASK: "the slot is moving and the client has not followed: try again",
  TRYAGAIN: "the slot is moving, and each of two servers has some of the keys: try again when it has moved",
  CROSSSLOT: "keys of one lock came to different slots: a proxy that hashes differently is in between",
  NOREPLICAS: "the server has fewer replicas than min-replicas-to-write",
  MISCONF: "the server cannot save its data and refuses writes: look at its log",
  NOPROTO: "the server does not speak the client's protocol",
  SUBSCRIBER:
    "the client listens on channels and takes nothing else: give one of its own, such as client.duplicate()",
  SERVER: "this server is not part of a cluster: use redis:// for it, or a client of one server",
  NO_SENTINEL: "this server is no Sentinel: use redis:// for it, or give the address of a Sentinel",
  UNSENT: "the client has no connection: try again when it has",
  WRONGTYPE: foreignKey,
};

/** The first word of a refusal that a text is; null if it is none. What a client gave up following was refused, too. */
function refusalOf(text: string): string | null {
  const [, word = ""] = /^(?:Too many Cluster redirections\. Last error: \w+: )?([A-Z]+)\b/.exec(text) ?? [];
  if (Object.hasOwn(refusals, word)) return word;
  if (text === "Too many Cluster redirections") return "MOVED";
  // A script can be killed only before its first write.
  if (text.includes("Script killed by user")) return "BUSY";
  if (/The user executing the script can't|has no permissions/.test(text)) return "NOPERM";
  if (/in subscriber mode|only \(P\|S\)SUBSCRIBE/.test(text)) return "SUBSCRIBER";
  if (text.includes("cluster support disabled")) return "SERVER";
  if (/unknown command '?sentinel/i.test(text)) return "NO_SENTINEL";
  return isUnsent(text) ? "UNSENT" : null;
}

/** Whether this is what a library says of a command that it did not send, since there is no connection. */
export function isUnsent(cause: unknown): boolean {
  return /^(?:Stream isn't writeable|The client is (?:offline|closed))/.test(textOf(cause));
}

/** What the server said about one call of a script: a text that starts with the error's first word. */
export function failureOf(text: string, cause?: unknown): LockError {
  if (text.startsWith("MIXED")) {
    return error(
      "LOCK_UNSUPPORTED",
      "a queue has either locks or permits, and this one has the other kind",
      cause,
    );
  }
  if (text.startsWith("LATE")) {
    return error(
      "LOCK_UNAVAILABLE",
      "the request reached the server after its deadline, and was refused",
      cause,
    );
  }
  const refusal = refusalOf(text);
  if (refusal !== null) return error("LOCK_UNAVAILABLE", `${refusals[refusal]} (${text})`, cause);
  return error("LOCK_OUTCOME_UNKNOWN", `the server failed: ${text}`, cause);
}

/** The failure of a call about one lock: says which key is somebody else's, where that is what is wrong. */
export function failureAt({ name, queue }: PlacedKeys, failure: unknown): unknown {
  if (!(failure instanceof LockError) || !failure.message.includes(foreignKey)) return failure;
  const lock = nameOfQueue(name);
  const keys = `somebody else uses the key ${queue}, or one that starts with it`;
  const message = failure.message.replace(
    foreignKey,
    () => `lock ${JSON.stringify(lock)}: ${keys}: remove that key, or give another prefix`,
  );
  const cause = failure.cause === undefined ? {} : { cause: failure.cause };
  return new LockError(failure.code, message, { lock, backend: "redis", ...cause });
}

/** What a library rejected a command with that had been sent. */
export function sentFailure(cause: unknown): LockError {
  const text = textOf(cause);
  if (refusalOf(text) !== null || isReply(cause)) return failureOf(text, cause);
  return error("LOCK_OUTCOME_UNKNOWN", `the connection broke before the answer came: ${text}`, cause);
}

/** Whether the server does not have a script that was asked for by its digest. */
export function isScriptMissing(cause: unknown): boolean {
  return textOf(cause).startsWith("NOSCRIPT");
}

/**
 * Whether the slot of a command is moving, and each of two servers has some of the keys that the command names; or has moved, and the
 * client has given up following. Which of the three a library says depends on when it stops trying.
 */
export function isMoving(cause: unknown): boolean {
  return ["TRYAGAIN", "ASK", "MOVED"].includes(refusalOf(textOf(cause)) ?? "");
}

/** A command was not sent: there is no connection. */
export function notConnected(deadlineMs: number, cause: unknown): LockError {
  const why = cause === null ? "" : `: ${failureText(cause)}`;
  return error(
    "LOCK_UNAVAILABLE",
    `there is no connection, and none came within ${deadlineMs} ms${why}`,
    cause,
  );
}

/** A command was sent, and the deadline has passed. */
export function notAnswered(deadlineMs: number): LockError {
  return error("LOCK_OUTCOME_UNKNOWN", `the server has not answered within ${deadlineMs} ms`);
}

/** A grant that so many replicas did not confirm. */
export function notReplicated(seen: string): LockError {
  const todo = /unknown command/i.test(seen)
    ? "WAITAOF needs Redis 7.2 or newer, so leave the option aof out"
    : "look at the replication";
  return error("LOCK_UNAVAILABLE", `${seen}, so the request was taken back: ${todo}`);
}

/** The client was closed. */
export function closed(): LockError {
  return error("LOCK_CLOSED", "this client of redis was closed");
}

function error(code: LockErrorCode, message: string, cause?: unknown): LockError {
  const text = `redis: ${message}`;
  return new LockError(code, text, cause === undefined ? { backend: "redis" } : { backend: "redis", cause });
}

function failureText(cause: unknown): string {
  // A cluster of ioredis that found no node says only that; what the last one said comes with it.
  const text = textOf(property(cause, "lastNodeError") ?? cause);
  const refusal = refusalOf(text);
  return refusal === null ? text : `${refusals[refusal]} (${text})`;
}

/** Both libraries give replies classes of their own. */
function isReply(cause: unknown): boolean {
  return (
    cause instanceof Error && /^(ReplyError|ErrorReply|SimpleError|BlobError)$/.test(cause.constructor.name)
  );
}

function textOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause.message !== "") return cause.message;
  // Node gives several failed addresses as one error without a message.
  return cause instanceof AggregateError ? cause.errors.map(textOf).join("; ") : cause.name;
}
