/** Writes that carry a token: a row that has seen a newer one refuses them in the same statement. */
import { invalid, LockError } from "../core/errors.ts";
import { isStale, staleToken } from "../fencing/guard.ts";
import { checkToken } from "../fencing/token.ts";
import { assignments, type Dialect, type Key, tableOf } from "./dialect.ts";
import { checkIdentifier } from "./identifiers.ts";

/** What is to be written, and with which right. */
export interface FencedChange {
  readonly table: string;
  /** The columns that name the row, and their values. */
  readonly key: Key;
  /** The token of the lock. */
  readonly token: bigint;
  /** The columns to set. */
  readonly set: Key;
  /**
   * The column that keeps the highest token that the row has seen: a bigint, 0 or null at first.
   * @default "fence"
   */
  readonly column?: string | undefined;
}

/** How often a row that was not there, and then was, is tried. */
const tries = 3;

/** Writes unless the row has seen a newer token: then it throws LOCK_STALE_TOKEN. False if there is no such row. */
export async function fencedUpdate<T>(
  dialect: Dialect<T>,
  tx: T,
  { table, key, token, set, column = "fence" }: FencedChange,
): Promise<boolean> {
  checkToken(token);
  const name = tableOf(dialect, table);
  const fence = dialect.quote(checkIdentifier(column, "the name of a column"));
  const changes = assignments(dialect, { ...set, [column]: token.toString() }, 1);
  const found = assignments(dialect, key, changes.values.length + 1);
  const values = [...changes.values, ...found.values, token.toString()];
  const limit = `(${fence} IS NULL OR ${fence} <= ${dialect.wholeMark(values.length)})`;
  const where = [...found.texts, limit].join(" AND ");
  const update = `UPDATE ${name} SET ${changes.texts.join(", ")} WHERE ${where}`;
  const again = assignments(dialect, key, 1);
  // A plain read may see the row as it was when the transaction began; one that locks sees it as it is now.
  const look = `SELECT ${dialect.asText(fence)} AS fence FROM ${name} WHERE ${again.texts.join(" AND ")} FOR UPDATE`;
  for (let turn = 1; turn <= tries; turn++) {
    const { count } = await dialect.run(tx, update, values);
    if (count > 0) return true;
    const { rows } = await dialect.run(tx, look, again.values);
    const [row] = rows;
    if (row === undefined) return false;
    const text = row["fence"];
    const seen = typeof text === "string" ? BigInt(text) : null;
    if (seen !== null && isStale(token, seen)) {
      const resource = `${table} ${JSON.stringify(Object.values(key))}`;
      throw staleToken({ backend: dialect.backend, resource, token, highest: seen });
    }
    // A database that counts only rows that changed has written what was there already. Otherwise the row has just come.
    if (turn > 1 && seen === token) return true;
  }
  throw new LockError("LOCK_OUTCOME_UNKNOWN", `${table}: the row comes and goes while it is written`, {
    backend: dialect.backend,
  });
}

/** The refusal of a lock in a transaction that is busy. */
export function busy(backend: string, name: string, cause: unknown): LockError {
  const message = `lock ${JSON.stringify(name)} on ${backend}: it is busy, and the wait is over`;
  return new LockError("LOCK_TIMEOUT", message, { lock: name, backend, cause });
}

/** The refusal of what only lasts as long as a transaction, where none is open: each statement would be one of its own. */
export function notBegun(backend: string, what: string, cause?: unknown): TypeError {
  const message = `${what} on ${backend} needs a transaction that has begun, on one connection: not a pool, nor a connection without BEGIN`;
  return invalid(message, cause === undefined ? { backend } : { backend, cause });
}

/** How long the name of a resource may be, in bytes of UTF-8. */
const longestResource = 512;

/** What is shown to the fence of a resource. */
export function checkFence(resource: string, token: bigint): void {
  checkResource(resource);
  checkToken(token);
}

/** The name of a resource. */
export function checkResource(resource: string): void {
  const bytes = typeof resource === "string" ? Buffer.byteLength(resource) : 0;
  if (bytes >= 1 && bytes <= longestResource && !resource.includes("\0") && resource.isWellFormed()) return;
  throw invalid(
    `the name of a resource is well-formed text without NUL, 1 to ${longestResource} bytes of UTF-8`,
  );
}
