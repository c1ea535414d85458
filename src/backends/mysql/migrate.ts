/** Brings the tables and procedures of a MySQL or MariaDB database up to the version that this package knows; any number may try at once. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { takeTurn } from "../../sql/patience.ts";
import { versionsOf } from "../../sql/versions.ts";
import { isMissing, type MysqlConnection, rowsOf } from "./connection.ts";
import { createVersions, noteVersion, versionOf } from "./statements.ts";

/** The version of the schema that a database has; 0 if there is none. */
export async function currentVersion(connection: MysqlConnection, prefix: string): Promise<number> {
  try {
    const [row] = await rowsOf(connection, versionOf(prefix));
    return Number(row?.["version"] ?? 0);
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

/**
 * Applies the versions that are missing and gives their numbers. One that was cut short is applied again from its start. Each
 * step of it has to end in time.
 */
export async function applyVersions(
  connection: MysqlConnection,
  prefix: string,
  inTime: <T>(step: () => Promise<T>) => Promise<T>,
): Promise<readonly number[]> {
  const text = await readFile(new URL("./schema.sql", import.meta.url), "utf8");
  const lock = await inTime(() => migrationLock(connection, prefix));
  await takeTurn("mysql", async () => {
    const [row] = await inTime(() => rowsOf(connection, "SELECT GET_LOCK(?, 0) AS got", [lock]));
    return Number(row?.["got"]) === 1;
  });
  try {
    await inTime(() => connection.query(createVersions(prefix)));
    const from = await inTime(() => currentVersion(connection, prefix));
    const missing = versionsOf(text).filter(({ number }) => number > from);
    for (const { number, sql } of missing) {
      for (const statement of statementsOf(sql, prefix)) await inTime(() => connection.query(statement));
      await inTime(() => connection.query(noteVersion(prefix, number)));
    }
    return missing.map(({ number }) => number);
  } finally {
    await inTime(() => rowsOf(connection, "SELECT RELEASE_LOCK(?) AS released", [lock])).catch(() => {});
  }
}

/** GET_LOCK is one space for the whole server, with names of 64 characters. */
async function migrationLock(connection: MysqlConnection, prefix: string): Promise<string> {
  const [row] = await rowsOf(connection, "SELECT DATABASE() AS name");
  const hash = createHash("sha256").update(`${row?.["name"]}/${prefix}`).digest("hex");
  return `holdfast:${hash.slice(0, 40)}`;
}

/** The statements of a script, which end with the delimiter that it sets. */
function statementsOf(script: string, prefix: string): readonly string[] {
  return script
    .replace(/^DELIMITER .*$/gm, "")
    .replaceAll(":prefix:", prefix)
    .split(/^\/\/$/m)
    .filter((statement) => statement.replace(/^--.*$/gm, "").trim() !== "");
}
