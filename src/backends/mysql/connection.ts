/** Connections to MySQL or MariaDB through `mysql2`, which is loaded when it is first needed; what is sent is left to others. */
import type { Connection, ConnectionOptions, ResultSetHeader, RowDataPacket } from "mysql2/promise";
import { LockError } from "../../core/errors.ts";
import type { Session, Verdict } from "../../sql/lane.ts";
import type { Place, Verb } from "../../sql/wire.ts";
import { inShardOrder } from "./shards.ts";
import { callOfMany, callOfOne, removalOf, type Statement } from "./statements.ts";

/** A pool of `mysql2` or `mysql2/promise`, as far as it is looked at: how it connects. Its own connections are never borrowed. */
export interface PoolLike {
  getConnection: unknown;
}

/** A connection of `mysql2/promise`. */
export type MysqlConnection = Connection;

/** Where to connect to. */
export type Target = { readonly url: string } | { readonly pool: PoolLike };

/** Connects. */
export async function connectTo(target: Target, waitMs: number): Promise<MysqlConnection> {
  const mysql = await import("mysql2/promise").catch((cause: unknown) => {
    const message = 'the mysql backend needs the package "mysql2": npm install mysql2';
    throw new LockError("LOCK_UNSUPPORTED", message, { backend: "mysql", cause });
  });
  const connection = await mysql.createConnection({
    ...("pool" in target ? configOf(target.pool) : { uri: target.url }),
    charset: "utf8mb4_bin",
    connectTimeout: Math.ceil(waitMs),
    enableKeepAlive: true,
    supportBigNumbers: true,
    // A pool may have rows read in ways of its own.
    rowsAsArray: false,
    nestTables: false,
    typeCast: true,
    namedPlaceholders: false,
    multipleStatements: false,
    // A stack for each call costs more than all else that the driver does.
    trace: false,
  });
  // Without a listener an error of an idle connection would end the process; whoever asks next finds it ended.
  connection.on("error", () => {});
  return connection;
}

/** How a pool connects: a promise pool has the other one inside. */
function configOf(pool: PoolLike): ConnectionOptions {
  const inner: unknown = Reflect.get(pool, "pool") ?? pool;
  const config: unknown = Reflect.get(Object(inner), "config");
  const options: unknown = Reflect.get(Object(config), "connectionConfig");
  if (isOptions(options)) return givable(options);
  const message = "this pool does not say how it connects: give a pool of mysql2, or a url";
  throw new LockError("LOCK_UNSUPPORTED", message, { backend: "mysql" });
}

/** What mysql2 has worked out by itself it does not take as an option. */
const workedOut = new Set(["maxPacketSize", "clientFlags"]);

function givable(options: ConnectionOptions): ConnectionOptions {
  return Object.fromEntries(Object.entries(options).filter(([key]) => !workedOut.has(key)));
}

function isOptions(value: unknown): value is ConnectionOptions {
  return typeof value === "object" && value !== null && ("host" in value || "socketPath" in value);
}

/** The rows of a query. */
export async function rowsOf(
  connection: MysqlConnection,
  sql: string,
  values: string[] = [],
): Promise<RowDataPacket[]> {
  const [rows] = await connection.query<RowDataPacket[]>(sql, values);
  return rows;
}

/** A connection as a lane uses it. */
export function sessionOn(connection: MysqlConnection, prefix: string): Session {
  const session: Session = {
    onEnd: null,
    async call(verb: Verb, requests) {
      const [request, ...others] = requests;
      if (request !== undefined && others.length === 0) {
        if (verb === "remove" && (await isRemoved(connection, prefix, request))) return [true];
        const one = callOfOne(prefix, verb, request);
        if (one !== undefined) return [answerOf[verb]((await resultsOf(connection, one))[0] ?? [])];
      }
      const { ordered, restore } = inShardOrder(requests);
      const results = await resultsOf(connection, callOfMany(prefix, verb, ordered));
      // One result set for each request, and then the word that the call has ended.
      return restore(results.slice(0, requests.length).map((rows) => answerOf[verb](rows)));
    },
    end: () => connection.end(),
    destroy: () => connection.destroy(),
  };
  const ended = (): void => session.onEnd?.();
  connection.on("error", ended);
  connection.on("end", ended);
  return session;
}

async function resultsOf(
  connection: MysqlConnection,
  { text, values }: Statement,
): Promise<RowDataPacket[][]> {
  const [results] = await connection.execute<RowDataPacket[][]>(text, values);
  return results;
}

/** The common case of a release: one statement, which is a transaction of its own. False says nothing. */
async function isRemoved(connection: MysqlConnection, prefix: string, request: object): Promise<boolean> {
  const removal = removalOf(prefix, request);
  if (removal === undefined) return false;
  const [{ affectedRows }] = await connection.execute<ResultSetHeader>(removal.text, removal.values);
  return affectedRows === 1;
}

/** What the rows of each call mean; the same as what other databases give as JSON. */
const answerOf: Readonly<Record<Verb, (rows: readonly RowDataPacket[]) => unknown>> = {
  append: ([row]) => placeOf(row),
  look: ([row]) => placeOf(row),
  // An append is on disk when it is answered.
  flush: () => true,
  remove: ([row]) => Boolean(row?.["was_live"]),
  renew: ([row]) => (row?.["was_evicted"] ? false : numberOf(row?.["left_us"])),
  list: (rows) => rows.map((row) => parsed(row["entry"])),
  queues: (rows) => rows.map((row) => String(row["name"])),
  sweep: ([row]) => Number(row?.["swept"]),
  // Nobody is told here, so nobody can have missed it.
  evictions: () => [],
};

function placeOf(row: RowDataPacket | undefined): unknown {
  if (row === undefined) return null;
  // A row without what is ahead says that nobody is.
  const {
    seq,
    left_us: left,
    age_us: age = 0,
    number = 0,
    weight = 0,
    nearest,
    writer,
    first_seq: first = null,
  } = row;
  const place: { readonly [Key in keyof Place]: unknown } = [
    seq,
    Number(left),
    Number(age),
    Number(number),
    Number(weight),
    parsed(nearest),
    parsed(writer),
    first,
  ];
  return place;
}

function numberOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/** MariaDB gives JSON as text, MySQL as a value. */
function parsed(value: unknown): unknown {
  return typeof value === "string" ? JSON.parse(value) : (value ?? null);
}

/** Rolled back in favour of others: deadlock, lock wait too long. */
const rolledBack = new Set([1205, 1213]);

/**
 * Another connection may do better: this server is read-only, and another one may lead to the new primary; or the call was
 * interrupted, and its transaction ends with the connection.
 */
const misdirected = new Set([1290, 1792, 1836, 1317, 1969, 3024]);

/** The server or a human ended the connection, maybe after the commit: shutdown, kill, query interrupted. */
const cut = new Set([1053, 1927, 3169]);

/** What an error of mysql2 says about the call that it ended: a server that answers with an error has rolled it back. */
export function judge(error: unknown): Verdict {
  const errno: unknown = Reflect.get(Object(error), "errno");
  const isAnswer = typeof Reflect.get(Object(error), "sqlState") === "string" && typeof errno === "number";
  if (!isAnswer || cut.has(errno)) return "unknown";
  if (rolledBack.has(errno)) return "again";
  return misdirected.has(errno) ? "stale" : "refused";
}

/** Whether an error says that the user lacks a right: to a database, a table, a routine. */
export function isDenied(error: unknown): boolean {
  return [1044, 1142, 1370].includes(Number(Reflect.get(Object(error), "errno")));
}

/** Whether an error says that a table or a procedure is not there. */
export function isMissing(error: unknown): boolean {
  return [1146, 1305].includes(Number(Reflect.get(Object(error), "errno")));
}
