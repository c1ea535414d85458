/** A fresh SQLite file for a test, and what is left in and beside it; the clients are opened by the test. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findDriver } from "../../src/backends/sqlite/driver.ts";

/** A file in a folder of its own. */
export interface SqliteFile {
  readonly folder: string;
  readonly path: string;
  /** Rows that are left in its tables. */
  readonly rows: () => readonly string[];
  /** Sockets that are left beside it. */
  readonly sockets: () => readonly string[];
  readonly remove: () => void;
}

/** Names a file that is not there yet. */
export function sqliteFile(): SqliteFile {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
  const path = join(folder, "locks.db");
  return {
    folder,
    path,
    rows: () => {
      const db = findDriver().open(path);
      try {
        const sql =
          "SELECT 'entry ' || id AS row FROM entries WHERE queue <> '' UNION ALL SELECT 'evicted ' || seq FROM evicted";
        return db
          .prepare<{ row: string }>(sql)
          .all()
          .map(({ row }) => row);
      } finally {
        db.close();
      }
    },
    sockets: () => {
      try {
        return readdirSync(`${path}-hubs`);
      } catch {
        return [];
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
