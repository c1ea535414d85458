/** Brings the tables and procedures of a MySQL or MariaDB database up to the version that this package knows; any number may try at once. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { LockError } from "../../core/errors.ts";
import { versionsOf } from "../../sql/versions.ts";
import { isMissing, type MysqlConnection, rowsOf } from "./connection.ts";
import { createVersions, noteVersion, versionOf } from "./statements.ts";

/** How long a migration waits for another one, in seconds. */
const patienceS = 60;

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

/** Applies the versions that are missing and gives their numbers. One that was cut short is applied again from its start. */
export async function applyVersions(connection: MysqlConnection, prefix: string): Promise<readonly number[]> {
  const text = await readFile(new URL("./schema.sql", import.meta.url), "utf8");
  const lock = await migrationLock(connection, prefix);
  const [got] = await rowsOf(connection, "SELECT GET_LOCK(?, ?) AS got", [lock, String(patienceS)]);
  if (Number(got?.["got"]) !== 1) {
    const message = `another migration has been going on for ${patienceS} s`;
    throw new LockError("LOCK_UNAVAILABLE", message, { backend: "mysql" });
  }
  try {
    await connection.query(createVersions(prefix));
    const from = await currentVersion(connection, prefix);
    const missing = versionsOf(text).filter(({ number }) => number > from);
    for (const { number, sql } of missing) {
      for (const statement of statementsOf(sql, prefix)) await connection.query(statement);
      await connection.query(noteVersion(prefix, number));
    }
    return missing.map(({ number }) => number);
  } finally {
    await rowsOf(connection, "SELECT RELEASE_LOCK(?) AS released", [lock]).catch(() => {});
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
