/** The SQL that a client of MySQL or MariaDB sends, beside the schema; when it is sent is left to the files that use it. */
import type { Verb } from "../../sql/wire.ts";

/** A statement and its values. */
export interface Statement {
  readonly text: string;
  readonly values: (string | number)[];
}

/** A value as the procedures take it: they know neither booleans nor null. */
function plain(value: unknown): string | number {
  if (typeof value === "string" || typeof value === "number") return value;
  return Number(Boolean(value));
}

/** The procedures that take one request: what they take of it, in their order, and how they are called. */
const procedures: Readonly<
  Partial<Record<Verb, { readonly takes: readonly string[]; readonly call: string }>>
> = {
  append: {
    takes: ["queue", "id", "writer", "weight", "permits", "ttl", "demand", "about", "again"],
    // The last one: it is a transaction of its own.
    call: "append`(?,?,?,?,?,?,?,?,?,TRUE)",
  },
  look: { takes: ["queue", "seq"], call: "place`(?,?,0)" },
};

/** Calls the procedure for one request: the common case, and cheaper for the server. Undefined where there is none. */
export function callOfOne(prefix: string, verb: Verb, request: object): Statement | undefined {
  const procedure = procedures[verb];
  if (procedure === undefined) return undefined;
  const values = procedure.takes.map((name) => plain(Reflect.get(request, name)));
  return { text: `CALL \`${prefix}${procedure.call}`, values };
}

/** Calls the procedure for many requests, which are one array. */
export function callOfMany(prefix: string, verb: Verb, requests: readonly object[]): Statement {
  const name = verb === "append" ? "append_all" : verb;
  const text = JSON.stringify(requests, (_, value: unknown) =>
    typeof value === "object" && value ? value : plain(value),
  );
  return { text: `CALL \`${prefix}${name}\`(?)`, values: [text] };
}

/** Takes an entry out that has not expired and whose seq is known, and nothing else. */
export function removalOf(prefix: string, request: object): Statement | undefined {
  const [queue, seq, id, evict] = ["queue", "seq", "id", "evict"].map((name) =>
    plain(Reflect.get(request, name)),
  );
  if (queue === undefined || !seq || id === undefined || evict) return undefined;
  const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
  const which = `queue = ? AND seq = CAST(? AS SIGNED) AND id = ? AND expires_at > ${now}`;
  return { text: `DELETE FROM \`${prefix}entries\` WHERE ${which}`, values: [queue, seq, id] };
}

/**
 * Settings on which the promises rest, for a connection of our own. Without gap locks two queues never wait for each
 * other.
 */
export function settingsOf(deadlineMs: number): readonly string[] {
  const seconds = Math.max(1, Math.ceil(deadlineMs / 1000));
  return [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    `SET SESSION autocommit = 1, completion_type = 0, sql_safe_updates = 0, innodb_lock_wait_timeout = ${seconds}, sql_mode = 'STRICT_ALL_TABLES'`,
  ];
}

/** The table of versions. */
export function createVersions(prefix: string): string {
  return `CREATE TABLE IF NOT EXISTS \`${prefix}versions\` (
    version INT NOT NULL PRIMARY KEY, applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE = InnoDB`;
}

/** The version of the schema; fails if there is none. */
export function versionOf(prefix: string): string {
  return `SELECT MAX(version) AS version FROM \`${prefix}versions\``;
}

/** Notes that a version was applied. */
export function noteVersion(prefix: string, version: number): string {
  return `INSERT IGNORE INTO \`${prefix}versions\` (version) VALUES (${version})`;
}
