/** Brings the schema of a PostgreSQL database up to the version that this package knows; any number may try at once. */
import { readFile } from "node:fs/promises";
import { takeTurn } from "../../sql/patience.ts";
import { type Version, versionsOf } from "../../sql/versions.ts";
import { isMissing, type PgClient } from "./connection.ts";
import {
  beginMigration,
  createVersions,
  noteVersion,
  quoted,
  tryMigration,
  versionOf,
} from "./statements.ts";

/** The version of the schema that a database has; 0 if there is none. */
export async function currentVersion(client: PgClient, schema: string): Promise<number> {
  try {
    const { rows } = await client.query(versionOf(schema));
    return Number(rows[0]?.version ?? 0);
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

/** Applies the versions that are missing, all or nothing, and gives their numbers. Each step of it has to end in time. */
export async function applyVersions(
  client: PgClient,
  schema: string,
  inTime: <T>(step: () => Promise<T>) => Promise<T>,
): Promise<readonly number[]> {
  const text = await readFile(new URL("./schema.sql", import.meta.url), "utf8");
  try {
    await inTime(() => client.query(beginMigration));
    await takeTurn("postgres", async () => {
      const { rows } = await inTime(() => client.query(tryMigration(schema)));
      return rows[0]?.taken === true;
    });
    await inTime(() => client.query(createVersions(schema)));
    const from = await inTime(() => currentVersion(client, schema));
    const missing = versionsOf(text).filter(({ number }) => number > from);
    for (const version of missing) await inTime(() => client.query(scriptOf(schema, version)));
    await inTime(() => client.query("COMMIT"));
    return missing.map(({ number }) => number);
  } catch (error) {
    await inTime(() => client.query("ROLLBACK")).catch(() => {});
    throw error;
  }
}

function scriptOf(schema: string, { number, sql }: Version): string {
  return `${sql.replaceAll(':"schema"', quoted(schema))};\n${noteVersion(schema, number)}`;
}
