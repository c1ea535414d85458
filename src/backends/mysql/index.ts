/** The mysql backend: locks in the tables of a MySQL or MariaDB database, and tools for your own transactions. */
import { type Duration, durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/errors.ts";
import { SqlBackend } from "../../sql/backend.ts";
import { checkIdentifier } from "../../sql/identifiers.ts";
import { MysqlDatabase } from "./backend.ts";
import type { PoolLike, Target } from "./connection.ts";

export { mysqlTraits } from "./backend.ts";
export { type PoolLike } from "./connection.ts";
export { SqlBackend } from "../../sql/backend.ts";
export { type FencedChange } from "../../sql/fenced.ts";
export { type RowLockOptions } from "../../sql/transaction.ts";
export { type VersionedChange, type VersionedOutcome } from "../../sql/versioned.ts";
export {
  fence,
  fencedUpdate,
  rowLock,
  sessionLock,
  updateVersioned,
  type WithPrefix,
  type MysqlTransaction,
  type SessionLock,
} from "./transaction.ts";

/** Options of mysqlBackend: a URL or a pool, and how to use it. */
export interface MysqlOptions {
  /** `mysql://user:password@host:port/database`, as `mysql2` understands it. */
  readonly url?: string | undefined;
  /** A pool of `mysql2`: holdfast connects as it does, with two connections of its own, and never borrows one. */
  readonly pool?: PoolLike | undefined;
  /**
   * What the names of the tables and procedures start with.
   * @default "holdfast_"
   */
  readonly prefix?: string | undefined;
  /**
   * Whether the tables are created or brought up to date when it is first used.
   * @default true
   */
  readonly migrate?: boolean | undefined;
  /**
   * How long a call may take until its connection is given up.
   * @default "5s"
   */
  readonly deadline?: Duration | undefined;
}

/** A client of locks in a MySQL or MariaDB database. It connects when it is first used. */
export function mysqlBackend(options: MysqlOptions): SqlBackend {
  const { deadlineMs, ...rest } = checked(options);
  return new SqlBackend(databaseOf({ deadlineMs, ...rest }), deadlineMs);
}

/** Creates the tables and procedures, or brings them up to date, and gives the versions that were applied. Any number may do it at once. */
export async function migrateMysql(options: MysqlOptions): Promise<readonly number[]> {
  return databaseOf(checked(options)).migrate();
}

interface Checked {
  readonly target: Target;
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly migrate: boolean;
}

function databaseOf({ target, prefix, deadlineMs, migrate }: Checked): MysqlDatabase {
  return new MysqlDatabase(target, prefix, deadlineMs, migrate);
}

function checked({
  url,
  pool,
  prefix = "holdfast_",
  migrate = true,
  deadline = "5s",
}: MysqlOptions): Checked {
  const deadlineMs = durationMs(deadline, { option: "deadline", leastMs: 10 });
  const name = checkIdentifier(prefix, "a prefix", 32);
  if (url !== undefined && pool === undefined) return { target: { url }, prefix: name, deadlineMs, migrate };
  if (pool !== undefined && url === undefined) return { target: { pool }, prefix: name, deadlineMs, migrate };
  throw invalid("give mysqlBackend either a url or a pool", { backend: "mysql" });
}
