/** The SQL that a client of MySQL or MariaDB sends, beside the schema; when it is sent is left to the files that use it. */
import type { Verb } from "../../sql/wire.ts";

/** Calls a procedure of the schema with its array of requests. */
export function callOf(prefix: string, verb: Verb): string {
  return `CALL \`${prefix}${verb}\`(?)`;
}

/**
 * Settings on which the promises rest, for a connection of our own. Without gap locks two queues never wait for each
 * other; in UTC no hour comes twice.
 */
export function settingsOf(deadlineMs: number): readonly string[] {
  const seconds = Math.max(1, Math.ceil(deadlineMs / 1000));
  return [
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    `SET SESSION time_zone = '+00:00', autocommit = 1, innodb_lock_wait_timeout = ${seconds}, sql_mode = 'STRICT_ALL_TABLES'`,
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
