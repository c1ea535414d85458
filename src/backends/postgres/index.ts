/** The postgres backend: locks in the tables of a PostgreSQL database, and tools for your own transactions. */
import { type Duration, durationMs } from "../../core/duration.ts";
import { invalid } from "../../core/errors.ts";
import { placeOfUrl, readUrl } from "../../core/url-parts.ts";
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
  const { schema = "holdfast", migrate = true, deadline = "5s" } = options;
  const deadlineMs = durationMs(deadline, { option: "deadline", leastMs: 10 });
  checkIdentifier(schema, "the name of a schema");
  const database = new PostgresDatabase(targetOf(options), schema, deadlineMs, migrate);
  return new SqlBackend(database, deadlineMs, placeOfUrl(options.url));
}

function targetOf({ url, pool }: PostgresOptions): Target {
  if (url !== undefined && pool === undefined) {
    // As pg reads it: a host may be missing, also after a user.
    readUrl("postgres", url.replace("@/", "@localhost/"), "postgres://localhost");
    return { url };
  }
  if (pool !== undefined && url === undefined) return { pool };
  throw invalid("give postgresBackend either a url or a pool", { backend: "postgres" });
}
