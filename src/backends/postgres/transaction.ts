/** Locks, versions and fences inside a user's own transaction on `pg`: the database ends them with COMMIT or ROLLBACK. */
import { invalid, LockError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { staleToken } from "../../fencing/guard.ts";
import type { Dialect } from "../../sql/dialect.ts";
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
import { quoted } from "./statements.ts";

/** A client of `pg` (or what acts like one) on which a transaction has begun. */
export interface PgTransaction {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>;
}

/** Where the tables of holdfast are. */
export interface InSchema {
  /**
   * The schema that holds the tables.
   * @default "holdfast"
   */
  readonly schema?: string | undefined;
}

const dialect: Dialect<PgTransaction> = {
  backend: "postgres",
  quote: quoted,
  mark: (n) => `$${n}`,
  wholeMark: (n) => `$${n}::bigint`,
  asText: (column) => `${column}::text`,
  async run(tx, sql, values) {
    const { rows, rowCount } = await tx.query(sql, [...values]);
    return { rows: rows.filter(isRow), count: rowCount ?? 0 };
  },
  isBusy: (error) => Reflect.get(Object(error), "code") === "55P03",
};

function isRow(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The shortest lock_timeout that is not "never", in milliseconds. */
const shortestMs = 1;

/**
 * Locks a name until the transaction ends, as SELECT … FOR UPDATE does. True when it is locked; false only with
 * `skipLocked`. Throws LOCK_TIMEOUT when the wait is over; the transaction can go on after that. LOCK_INVALID if no
 * transaction is open, as on a pool: then nothing would stay locked.
 */
export async function rowLock(
  tx: PgTransaction,
  name: string,
  options: RowLockOptions & InSchema = {},
): Promise<boolean> {
  checkName(name);
  const table = `${quoted(checkIdentifier(options.schema ?? "holdfast", "the name of a schema"))}.row_locks`;
  const lock = async (): Promise<void> => {
    for (;;) {
      const { rowCount } = await tx.query(`SELECT 1 FROM ${table} WHERE name = $1 FOR UPDATE`, [name]);
      if (rowCount === 1) return;
      // A name that is new is locked by creating it. If another was faster, it is there now.
      const made = await tx.query(`INSERT INTO ${table} (name) VALUES ($1) ON CONFLICT DO NOTHING`, [name]);
      if (made.rowCount === 1) return;
    }
  };
  return locked(tx, name, options, "rowLock", lock);
}

/**
 * Locks a name until the transaction ends, in no table: the name's hash is locked. Names that share a hash, one pair in
 * 2^64, exclude each other. The same answers as rowLock.
 */
export async function advisoryLock(
  tx: PgTransaction,
  name: string,
  options: RowLockOptions = {},
): Promise<boolean> {
  checkName(name);
  return locked(tx, name, options, "advisoryLock", async () => {
    await tx.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 7))", [name]);
  });
}

/** A lock that a connection holds, not a transaction. */
export interface SessionLock {
  /** Ends it. Throws LOCK_LOST if the connection is not the one that took it any more, or has given it up already. */
  release(): Promise<void>;
}

/**
 * Locks a name until `release` or the end of the connection, which must be one connection for all that time: a pooler in
 * transaction mode is refused. Null if it is busy and the wish was not to wait.
 */
export async function sessionLock(
  client: PgTransaction,
  name: string,
  { nowait = false }: { readonly nowait?: boolean | undefined } = {},
): Promise<SessionLock | null> {
  checkName(name);
  if ("totalCount" in client) throw invalid("sessionLock needs one connection, not a pool");
  const pid = await pidOf(client);
  const how = nowait ? "pg_try_advisory_lock" : "pg_advisory_lock";
  const { rows } = await client.query(`SELECT ${how}(hashtextextended($1, 7)) AS got`, [name]);
  if (nowait && Reflect.get(Object(rows[0]), "got") !== true) return null;
  if ((await pidOf(client)) !== pid) {
    const message = `lock ${JSON.stringify(name)} on postgres: the connection is served by one process and then by another: a pooler swaps them`;
    throw new LockError("LOCK_UNSUPPORTED", message, { lock: name, backend: "postgres" });
  }
  return {
    async release() {
      const sql = `SELECT CASE WHEN pg_backend_pid() = $2 THEN pg_advisory_unlock(hashtextextended($1, 7)) END AS released`;
      const { rows: answer } = await client.query(sql, [name, pid]);
      if (Reflect.get(Object(answer[0]), "released") === true) return;
      const message = `lock ${JSON.stringify(name)} on postgres: its connection has given it up, or is another one, as where a pooler swaps them`;
      throw new LockError("LOCK_LOST", message, { lock: name, backend: "postgres" });
    },
  };
}

/** Changes a row if its version is still the one that was read; reads and tries again if it is not. */
export function updateVersioned(tx: PgTransaction, change: VersionedChange): Promise<VersionedOutcome> {
  return updateVersionedIn(dialect, tx, change);
}

/** Writes unless the row has seen a newer token: then it throws LOCK_STALE_TOKEN. False if there is no such row. */
export function fencedUpdate(tx: PgTransaction, change: FencedChange): Promise<boolean> {
  return fencedUpdateIn(dialect, tx, change);
}

/**
 * Shows a token to the fence of a resource, for what has no column for it: throws LOCK_STALE_TOKEN if the resource has
 * seen a newer one. The fence stays locked until the transaction ends, so that what it writes is in order; LOCK_INVALID if none is open.
 */
export async function fence(
  tx: PgTransaction,
  resource: string,
  token: bigint,
  { schema = "holdfast" }: InSchema = {},
): Promise<void> {
  checkFence(resource, token);
  const table = `${quoted(checkIdentifier(schema, "the name of a schema"))}.fences`;
  await assertBegun(tx, "fence");
  const { rowCount } = await tx.query(
    `INSERT INTO ${table} AS f (resource, token) VALUES ($1, $2)
      ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token`,
    [resource, token.toString()],
  );
  if (rowCount === 1) return;
  const { rows } = await tx.query(`SELECT token::text AS token FROM ${table} WHERE resource = $1`, [
    resource,
  ]);
  throw staleToken({
    backend: "postgres",
    resource,
    token,
    highest: String(Reflect.get(Object(rows[0]), "token")),
  });
}

/** Runs what takes a lock with the wait that was asked for; a savepoint keeps the transaction alive if it is in vain. */
async function locked(
  tx: PgTransaction,
  name: string,
  options: RowLockOptions,
  what: string,
  lock: () => Promise<void>,
): Promise<boolean> {
  const waitMs = waitMsOf(options);
  await assertBegun(tx, what);
  if (waitMs === null) {
    await lock();
    return true;
  }
  const { rows } = await tx.query("SELECT current_setting('lock_timeout') AS before");
  const before: unknown = Reflect.get(Object(rows[0]), "before");
  await tx.query("SAVEPOINT holdfast_lock");
  try {
    await tx.query("SELECT set_config('lock_timeout', $1, true)", [
      `${Math.max(shortestMs, Math.ceil(waitMs))}ms`,
    ]);
    await lock();
    await tx.query("SELECT set_config('lock_timeout', $1, true)", [before]);
    await tx.query("RELEASE SAVEPOINT holdfast_lock");
    return true;
  } catch (error) {
    await tx.query("ROLLBACK TO SAVEPOINT holdfast_lock");
    if (!dialect.isBusy(error)) throw error;
    if (options.skipLocked === true) return false;
    throw busy("postgres", name, error);
  }
}

/** Refuses a connection on which no transaction is open, and a pool. Newer versions of `pg` know; others have to try. */
async function assertBegun(tx: PgTransaction, what: string): Promise<void> {
  const status: unknown = Reflect.get(tx, "getTransactionStatus");
  if (typeof status === "function" && status.call(tx) === "T") return;
  try {
    await tx.query("SAVEPOINT holdfast_begun");
  } catch (error) {
    // no_active_sql_transaction
    throw Reflect.get(Object(error), "code") === "25P01" ? notBegun("postgres", what, error) : error;
  }
  await tx.query("RELEASE SAVEPOINT holdfast_begun");
}

async function pidOf(client: PgTransaction): Promise<number> {
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  return Number(Reflect.get(Object(rows[0]), "pid"));
}
