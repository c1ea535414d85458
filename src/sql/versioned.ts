/** The optimistic way: read a row, work out its change, and write it only if nobody wrote in between. */
import { systemClock } from "../core/clock.ts";
import { invalid } from "../core/errors.ts";
import { checkIdentifier } from "./identifiers.ts";
import { assignments, type Dialect, type Key, tableOf } from "./dialect.ts";

/** A row as it was read. */
export type Row = Readonly<Record<string, unknown>>;

/** What is to be changed, and how. */
export interface VersionedChange {
  readonly table: string;
  /** The columns that name the row, and their values. */
  readonly key: Key;
  /**
   * The column that counts the row's versions: a number that every write raises.
   * @default "version"
   */
  readonly version?: string | undefined;
  /** The columns to set, worked out from the row; null to leave it as it is. Called again for each try. */
  readonly change: (row: Row) => Key | null | Promise<Key | null>;
  /**
   * How often it is tried.
   * @default 10
   */
  readonly tries?: number | undefined;
}

/** `conflict`: others were faster each time. `missing`: there is no such row. `unchanged`: `change` gave null. */
export type VersionedOutcome =
  | { readonly outcome: "updated"; readonly tries: number }
  | { readonly outcome: "conflict"; readonly tries: number }
  | { readonly outcome: "unchanged" | "missing" };

/** The longest pause before the next try, in milliseconds. */
const longestPauseMs = 200;

/** Changes a row if its version is still the one that was read; reads and tries again if it is not. */
export async function updateVersioned<T>(
  dialect: Dialect<T>,
  tx: T,
  { table, key, version = "version", change, tries = 10 }: VersionedChange,
): Promise<VersionedOutcome> {
  const name = tableOf(dialect, table);
  const counter = dialect.quote(checkIdentifier(version, "the name of a column"));
  const found = assignments(dialect, key, 1);
  if (!Number.isInteger(tries) || tries < 1) throw invalid(`tries is ${tries}: give a whole number from 1`);
  for (let turn = 1; turn <= tries; turn++) {
    const { rows } = await dialect.run(
      tx,
      `SELECT * FROM ${name} WHERE ${found.texts.join(" AND ")}`,
      found.values,
    );
    const [row] = rows;
    if (row === undefined) return { outcome: "missing" };
    const before = row[version] ?? null;
    if (before === null)
      throw invalid(`${table}: the column ${version} must be a number, and is null or not there`);
    const changes = await change(row);
    if (changes === null) return { outcome: "unchanged" };
    checkChanges(changes, version);
    const set = assignments(dialect, changes, 1);
    const where = assignments(dialect, { ...key, [version]: before }, set.values.length + 1);
    const sql = `UPDATE ${name} SET ${set.texts.join(", ")}, ${counter} = ${counter} + 1 WHERE ${where.texts.join(" AND ")}`;
    const { count } = await dialect.run(tx, sql, [...set.values, ...where.values]);
    if (count > 0) return { outcome: "updated", tries: turn };
    if (turn < tries) await pause(Math.random() * Math.min(longestPauseMs, 2 ** turn));
  }
  return { outcome: "conflict", tries };
}

function checkChanges(changes: unknown, version: string): void {
  if (typeof changes !== "object" || changes === null)
    throw invalid("change gives the columns to set, or null");
  if (version in changes) throw invalid(`change must not set ${version}: every write raises it by one`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.after(ms, resolve);
  });
}
