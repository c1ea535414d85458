/** The mysql backend: locks in the tables of a MySQL or MariaDB database, and tools for your own transactions. */
import { type Duration, durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/errors.ts";
import { placeOfUrl, readUrl, unescaped } from "../../core/url-parts.ts";
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
  /** A pool of `mysql2`: holdfast connects as it does, with three connections of its own, and never borrows one. */
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
  const { prefix = "holdfast_", migrate = true, deadline = "5s" } = options;
  const deadlineMs = durationMs(deadline, { option: "deadline", leastMs: 10 });
  checkIdentifier(prefix, "a prefix", 32);
  const database = new MysqlDatabase(targetOf(options), prefix, deadlineMs, migrate);
  return new SqlBackend(database, deadlineMs, placeOfUrl(options.url));
}

function targetOf({ url, pool }: MysqlOptions): Target {
  if (url !== undefined && pool === undefined) {
    const { username, password, pathname } = readUrl("mysql", url);
    for (const [what, text] of Object.entries({ user: username, password, database: pathname })) {
      unescaped("mysql", what, text);
    }
    return { url };
  }
  if (pool !== undefined && url === undefined) return { pool };
  throw invalid("give mysqlBackend either a url or a pool", { backend: "mysql" });
}
