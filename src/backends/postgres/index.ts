/** The postgres backend: locks in the tables of a PostgreSQL database, and tools for your own transactions. */
import { type Duration, durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/errors.ts";
import { SqlBackend } from "../../sql/backend.ts";
import { checkIdentifier } from "../../sql/identifiers.ts";
import { PostgresDatabase } from "./backend.ts";
import type { PoolLike, Target } from "./connection.ts";

export { postgresTraits } from "./backend.ts";
export { type PoolLike } from "./connection.ts";
export { SqlBackend } from "../../sql/backend.ts";
export { type FencedChange } from "../../sql/fenced.ts";
export { type RowLockOptions } from "../../sql/transaction.ts";
export { type VersionedChange, type VersionedOutcome } from "../../sql/versioned.ts";
export {
  advisoryLock,
  fence,
  fencedUpdate,
  rowLock,
  sessionLock,
  updateVersioned,
  type InSchema,
  type PgTransaction,
  type SessionLock,
} from "./transaction.ts";

/** Options of postgresBackend: a URL or a pool, and how to use it. */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, as `pg` understands it. */
  readonly url?: string | undefined;
  /** A `pg.Pool`: holdfast connects as it does, with three connections of its own, and never borrows one. */
  readonly pool?: PoolLike | undefined;
  /**
   * The schema that holds the tables.
   * @default "holdfast"
   */
  readonly schema?: string | undefined;
  /**
   * Whether the schema is created or brought up to date when it is first used.
   * @default true
   */
  readonly migrate?: boolean | undefined;
  /**
   * How long a call may take until its connection is given up.
   * @default "5s"
   */
  readonly deadline?: Duration | undefined;
}

/** A client of locks in a PostgreSQL database. It connects when it is first used. */
export function postgresBackend(options: PostgresOptions): SqlBackend {
  const { deadlineMs, ...rest } = checked(options);
  return new SqlBackend(databaseOf({ deadlineMs, ...rest }), deadlineMs);
}

/** Creates the schema or brings it up to date, and gives the versions that were applied. Any number may do it at once. */
export async function migratePostgres(options: PostgresOptions): Promise<readonly number[]> {
  return databaseOf(checked(options)).migrate();
}

interface Checked {
  readonly target: Target;
  readonly schema: string;
  readonly deadlineMs: number;
  readonly migrate: boolean;
}

function databaseOf({ target, schema, deadlineMs, migrate }: Checked): PostgresDatabase {
  return new PostgresDatabase(target, schema, deadlineMs, migrate);
}

function checked({
  url,
  pool,
  schema = "holdfast",
  migrate = true,
  deadline = "5s",
}: PostgresOptions): Checked {
  const deadlineMs = durationMs(deadline, { option: "deadline", leastMs: 10 });
  const name = checkIdentifier(schema, "the name of a schema");
  if (url !== undefined && pool === undefined) return { target: { url }, schema: name, deadlineMs, migrate };
  if (pool !== undefined && url === undefined) return { target: { pool }, schema: name, deadlineMs, migrate };
  throw invalid("give postgresBackend either a url or a pool", { backend: "postgres" });
}
