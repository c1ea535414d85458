/** Locks, versions and fences inside a user's own transaction on `mysql2`: the database ends them with COMMIT or ROLLBACK. */
import { createHash } from "node:crypto";
import { invalid, LockError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { isStale, staleToken } from "../../fencing/guard.ts";
import type { Dialect, Result } from "../../sql/dialect.ts";
import {
  busy,
  checkFence,
  fencedUpdate as fencedUpdateIn,
  type FencedChange,
  notBegun,
} from "../../sql/fenced.ts";
import { checkIdentifier } from "../../sql/identifiers.ts";
import { type RowLockOptions, waitMsOf } from "../../sql/transaction.ts";
import {
  updateVersioned as updateVersionedIn,
  type VersionedChange,
  type VersionedOutcome,
} from "../../sql/versioned.ts";

/** A connection of `mysql2/promise` (or what acts like one) on which a transaction has begun. */
export interface MysqlTransaction {
  query(sql: string, values?: unknown[]): Promise<unknown>;
}

/** Where the tables of holdfast are. */
export interface WithPrefix {
  /**
   * What the names of the tables start with.
   * @default "holdfast_"
   */
  readonly prefix?: string | undefined;
}

/** Busy: lock wait too long; a lock that is not waited for (MySQL's own number). */
const busyErrors: readonly unknown[] = [1205, 3572];

const dialect: Dialect<MysqlTransaction> = {
  backend: "mysql",
  quote: (name) => `\`${name}\``,
  mark: () => "?",
  wholeMark: () => "CAST(? AS SIGNED)",
  asText: (column) => `CAST(${column} AS CHAR)`,
  async run(tx, sql, values) {
    const answer: unknown = await ask(tx, sql, values);
    const result: unknown = Array.isArray(answer) ? answer[0] : answer;
    if (Array.isArray(result)) return { rows: result.filter(isRow), count: result.length };
    const status: unknown = Reflect.get(Object(result), "serverStatus");
    const begun = typeof status === "number" ? isBegun(status) : undefined;
    return { rows: [], count: Number(Reflect.get(Object(result), "affectedRows") ?? 0), begun };
  },
  isBusy: (error) => busyErrors.includes(Reflect.get(Object(error), "errno")),
};

/** By `execute` where it is there: values then travel beside the SQL, whatever `sql_mode` makes of a backslash in it. */
function ask(tx: MysqlTransaction, sql: string, values: readonly unknown[]): Promise<unknown> {
  const given = values.map((value) => (value === undefined ? null : value));
  const execute: unknown = Reflect.get(tx, "execute");
  return given.length > 0 && typeof execute === "function"
    ? execute.call(tx, sql, given)
    : tx.query(sql, given);
}

function isRow(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Whether a transaction is open: SERVER_STATUS_IN_TRANS, or not SERVER_STATUS_AUTOCOMMIT, where the next statement begins one. */
function isBegun(status: number): boolean {
  return (status & 1) !== 0 || (status & 2) === 0;
}

function assertBegun({ begun }: Result, what: string): void {
  if (begun === false) throw notBegun("mysql", what);
}

/** A name as the tables keep it: bytes, so that the charset of a connection makes no difference. */
function bytesOf(name: string): Buffer {
  return Buffer.from(name);
}

/**
 * Locks a name until the transaction ends, as SELECT … FOR UPDATE does. True when it is locked; false only with
 * `skipLocked`. Throws LOCK_TIMEOUT when the wait is over, which is counted in whole seconds; the transaction can go on.
 * LOCK_INVALID if no transaction is open, as on a pool: then nothing would stay locked.
 */
export async function rowLock(
  tx: MysqlTransaction,
  name: string,
  options: RowLockOptions & WithPrefix = {},
): Promise<boolean> {
  checkName(name);
  const table = `\`${checkIdentifier(options.prefix ?? "holdfast_", "a prefix", 32)}row_locks\``;
  const waitMs = waitMsOf(options);
  // Creates a name that is new, and locks it in either case: two who only looked for it first would deadlock.
  const make = `INSERT INTO ${table} (name) VALUES (?) ON DUPLICATE KEY UPDATE name = name`;
  const lock = async (): Promise<void> =>
    assertBegun(await dialect.run(tx, make, [bytesOf(name)]), "rowLock");
  try {
    if (waitMs === null) await lock();
    else {
      assertBegun(await dialect.run(tx, "DO 0", []), "rowLock");
      if (waitMs > 0 || !(await isLockedNow(tx, table, name))) {
        await waiting(tx, Math.ceil(waitMs / 1000), lock);
      }
    }
    return true;
  } catch (error) {
    if (!dialect.isBusy(error)) throw error;
    if (options.skipLocked === true) return false;
    throw busy("mysql", name, error);
  }
}

/**
 * Locks a name that is there, without waiting. False if it is new. A read that locks nothing would tell as well, but all that a
 * REPEATABLE READ transaction reads after it would be as old as that read, also what is guarded by the next lock that it takes.
 */
async function isLockedNow(tx: MysqlTransaction, table: string, name: string): Promise<boolean> {
  const find = `SELECT 1 FROM ${table} WHERE name = ? FOR UPDATE NOWAIT`;
  return (await dialect.run(tx, find, [bytesOf(name)])).count > 0;
}

/** Runs something with another patience of this connection for row locks, in seconds. */
async function waiting(tx: MysqlTransaction, seconds: number, lock: () => Promise<unknown>): Promise<void> {
  const { rows } = await dialect.run(tx, "SELECT @@innodb_lock_wait_timeout AS seconds", []);
  await dialect.run(tx, `SET SESSION innodb_lock_wait_timeout = ${Math.max(1, seconds)}`, []);
  try {
    await lock();
  } finally {
    await dialect.run(tx, `SET SESSION innodb_lock_wait_timeout = ${Number(rows[0]?.["seconds"])}`, []);
  }
}

/** A lock that a connection holds, not a transaction. */
export interface SessionLock {
  /** Ends it. Throws LOCK_LOST if the connection is not the one that took it any more. */
  release(): Promise<void>;
}

/**
 * Locks a name by GET_LOCK until `release` or the end of the connection, which must be one connection for all that time.
 * Null if it is busy when the wait is over; without a wait it waits as long as it takes.
 */
export async function sessionLock(
  connection: MysqlTransaction,
  name: string,
  options: Pick<RowLockOptions, "wait" | "nowait"> = {},
): Promise<SessionLock | null> {
  checkName(name);
  if ("getConnection" in connection) throw invalid("sessionLock needs one connection, not a pool");
  const waitMs = waitMsOf(options);
  // One space of 64 characters for the whole server, of which some versions ignore the case.
  const lock = `holdfast:${createHash("sha256").update(name).digest("hex").slice(0, 48)}`;
  const seconds = waitMs === null ? 1_000_000 : waitMs / 1000;
  const { rows } = await dialect.run(connection, "SELECT GET_LOCK(?, ?) AS got, CONNECTION_ID() AS id", [
    lock,
    seconds,
  ]);
  const [row] = rows;
  if (Number(row?.["got"]) !== 1) return null;
  return {
    async release() {
      const sql = "SELECT IF(CONNECTION_ID() = ?, RELEASE_LOCK(?), NULL) AS released";
      const released = await dialect.run(connection, sql, [Number(row?.["id"]), lock]);
      if (Number(released.rows[0]?.["released"]) === 1) return;
      const message = `lock ${JSON.stringify(name)} on mysql: its connection was replaced, and the lock ended with it`;
      throw new LockError("LOCK_LOST", message, { lock: name, backend: "mysql" });
    },
  };
}

/** Changes a row if its version is still the one that was read; reads and tries again if it is not. */
export function updateVersioned(tx: MysqlTransaction, change: VersionedChange): Promise<VersionedOutcome> {
  return updateVersionedIn(dialect, tx, change);
}

/** Writes unless the row has seen a newer token: then it throws LOCK_STALE_TOKEN. False if there is no such row. */
export function fencedUpdate(tx: MysqlTransaction, change: FencedChange): Promise<boolean> {
  return fencedUpdateIn(dialect, tx, change);
}

/**
 * Shows a token to the fence of a resource, for what has no column for it: throws LOCK_STALE_TOKEN if the resource has
 * seen a newer one. The fence stays locked until the transaction ends, so that what it writes is in order; LOCK_INVALID if none is open.
 */
export async function fence(
  tx: MysqlTransaction,
  resource: string,
  token: bigint,
  { prefix = "holdfast_" }: WithPrefix = {},
): Promise<void> {
  checkFence(resource, token);
  const table = `\`${checkIdentifier(prefix, "a prefix", 32)}fences\``;
  const show = `INSERT INTO ${table} (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))`;
  assertBegun(await dialect.run(tx, show, [bytesOf(resource), token.toString()]), "fence");
  const { rows } = await dialect.run(
    tx,
    `SELECT CAST(token AS CHAR) AS token FROM ${table} WHERE resource = ? FOR UPDATE`,
    [bytesOf(resource)],
  );
  const highest = BigInt(String(rows[0]?.["token"]));
  if (isStale(token, highest)) throw staleToken({ backend: "mysql", resource, token, highest });
}
