/** PostgreSQL and MySQL as the guard for SQL asks them; no driver is loaded here: pools are handed in. */
import { invalid } from "../../core/errors.ts";
import { isMissing as isMissingInMysql, judge as judgeMysql } from "../../backends/mysql/connection.ts";
import {
  fence as mysqlFence,
  fencedUpdate as mysqlUpdate,
  type MysqlTransaction,
  type WithPrefix,
} from "../../backends/mysql/transaction.ts";
import {
  isMissing as isMissingInPostgres,
  judge as judgePostgres,
} from "../../backends/postgres/connection.ts";
import { quoted } from "../../backends/postgres/statements.ts";
import {
  fence as postgresFence,
  fencedUpdate as postgresUpdate,
  type InSchema,
  type PgTransaction,
} from "../../backends/postgres/transaction.ts";
import type { FencedChange } from "../../sql/fenced.ts";
import { checkIdentifier } from "../../sql/identifiers.ts";
import type { Verdict } from "../../sql/lane.ts";
import { SqlGuard } from "../sql.ts";

/** A connection that can run SQL. */
export interface Connection {
  query(sql: string, values?: unknown[]): Promise<unknown>;
}

/** A database, as seen by the guard. */
export interface SqlDatabase<Tx> {
  readonly backend: string;
  open(): Promise<Tx>;
  /** Gives a connection back; a broken one is ended. */
  release(tx: Tx, broken: boolean): void;
  begin(tx: Tx): Promise<unknown>;
  /** Commits; false if the server has rolled back instead. */
  commit(tx: Tx): Promise<boolean>;
  fence(tx: Tx, resource: string, token: bigint): Promise<void>;
  update(tx: Tx, change: FencedChange): Promise<boolean>;
  highest(tx: Tx, resource: string): Promise<bigint | null>;
  judge(error: unknown): Verdict;
  isMissing(error: unknown): boolean;
}

/** A client of a `pg.Pool`. */
export interface PgConnection extends PgTransaction {
  release(broken?: boolean): void;
}

/** Options of postgresGuard. */
export interface PostgresGuardOptions<Tx> extends InSchema {
  /** A `pg.Pool`. */
  readonly pool: { connect(): Promise<Tx> };
}

/**
 * A guard in a PostgreSQL database. `write` and `show` use the table of fences that `holdfast migrate` makes. Transactions
 * are `BEGIN`s of the pool's own isolation level: from repeatable read on, a write that meets another may have to be repeated.
 */
export function postgresGuard<Tx extends PgConnection = PgConnection>(
  options: PostgresGuardOptions<Tx>,
): SqlGuard<Tx> {
  const { pool, schema = "holdfast" } = options;
  const table = `${quoted(checkIdentifier(schema, "the name of a schema"))}.fences`;
  return new SqlGuard<Tx>({
    backend: "postgres",
    open: async () => {
      const tx = await pool.connect();
      // While it is lent, the pool does not listen: the end of its connection between two queries would end the process.
      listener(tx, "on");
      return tx;
    },
    release: (tx, broken) => {
      tx.release(broken);
      if (!broken) listener(tx, "removeListener");
    },
    begin: (tx) => tx.query("BEGIN"),
    // A transaction in which a statement has failed answers COMMIT with ROLLBACK, and calls it a success.
    commit: async (tx) => Reflect.get(await tx.query("COMMIT"), "command") !== "ROLLBACK",
    fence: (tx, resource, token) => postgresFence(tx, resource, token, { schema }),
    update: postgresUpdate,
    highest: async (tx, resource) => {
      const { rows } = await tx.query(`SELECT token::text AS token FROM ${table} WHERE resource = $1`, [
        resource,
      ]);
      return tokenIn(rows[0]);
    },
    judge: judgePostgres,
    isMissing: isMissingInPostgres,
  });
}

/** Whoever asks next hears of it. */
const ignored = (): void => {};

/** Begins or ends to listen for errors of a client, if it tells. */
function listener(tx: PgConnection, how: "on" | "removeListener"): void {
  const listen: unknown = Reflect.get(tx, how);
  if (typeof listen === "function") listen.call(tx, "error", ignored);
}

/** A connection of a pool of `mysql2/promise`. */
export interface MysqlConnection extends MysqlTransaction {
  release(): void;
  destroy(): void;
}

/** Options of mysqlGuard. */
export interface MysqlGuardOptions<Tx> extends WithPrefix {
  /** A pool of `mysql2/promise`. */
  readonly pool: { getConnection(): Promise<Tx> };
}

/**
 * A guard in a MySQL or MariaDB database. `write` and `show` use the table of fences that `holdfast migrate` makes. What
 * commits on its own, such as DDL, ends the transaction and its fence: keep it out of the work.
 */
export function mysqlGuard<Tx extends MysqlConnection = MysqlConnection>(
  options: MysqlGuardOptions<Tx>,
): SqlGuard<Tx> {
  const { pool, prefix = "holdfast_" } = options;
  if ("promise" in pool) throw invalid("give a pool of mysql2/promise, or what pool.promise() gives");
  const table = `\`${checkIdentifier(prefix, "a prefix", 32)}fences\``;
  return new SqlGuard<Tx>({
    backend: "mysql",
    open: () => pool.getConnection(),
    release: (tx, broken) => (broken ? tx.destroy() : tx.release()),
    begin: (tx) => tx.query("START TRANSACTION"),
    commit: async (tx) => {
      await tx.query("COMMIT");
      return true;
    },
    fence: (tx, resource, token) => mysqlFence(tx, resource, token, { prefix }),
    update: mysqlUpdate,
    highest: async (tx, resource) => {
      const sql = `SELECT CAST(token AS CHAR) AS token FROM ${table} WHERE resource = ?`;
      const answer: unknown = await tx.query(sql, [Buffer.from(resource)]);
      const rows: unknown = Array.isArray(answer) ? answer[0] : answer;
      return tokenIn(Array.isArray(rows) ? rows[0] : undefined);
    },
    judge: judgeMysql,
    isMissing: isMissingInMysql,
  });
}

function tokenIn(row: unknown): bigint | null {
  const token: unknown = Reflect.get(Object(row), "token");
  return typeof token === "string" ? BigInt(token) : null;
}
