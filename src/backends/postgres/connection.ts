/** Connections to PostgreSQL through `pg`, which is loaded when it is first needed; what is sent on them is left to others. */
import type { Client, ClientConfig, QueryArrayConfig } from "pg";
import { LockError } from "../../core/errors.ts";
import type { Session, Verdict } from "../../sql/lane.ts";
import { callOfMany, callOfOne, type FunctionCall } from "./statements.ts";

/** A `pg.Pool`, as far as it is looked at: how it connects. Its own connections are never borrowed. */
export interface PoolLike {
  readonly options: object;
}

/** A connected client of `pg`. */
export type PgClient = Client;

/** Where to connect to. */
export type Target = { readonly url: string } | { readonly pool: PoolLike };

/** Connects. The caller has to listen for errors of the client. */
export async function connectTo(target: Target, waitMs: number): Promise<PgClient> {
  const { default: pg } = await import("pg").catch((cause: unknown) => {
    const message = 'the postgres backend needs the package "pg": npm install pg';
    throw new LockError("LOCK_UNSUPPORTED", message, { backend: "postgres", cause });
  });
  const config: ClientConfig = "pool" in target ? target.pool.options : { connectionString: target.url };
  const client = new pg.Client({
    application_name: "holdfast",
    ...config,
    // Not enumerable in the options of a pool.
    ...("pool" in target && "password" in target.pool.options ? passwordOf(target.pool.options) : {}),
    // The process, or the options of a pool, may have values parsed in ways of their own.
    types: { getTypeParser: parserOf },
    keepAlive: true,
    connectionTimeoutMillis: Math.ceil(waitMs),
    query_timeout: 0,
  });
  // Without a listener an error of an idle connection would end the process; whoever asks next finds it ended.
  client.on("error", () => {});
  await client.connect();
  return client;
}

function passwordOf(options: object): ClientConfig {
  const password: unknown = Reflect.get(options, "password");
  if (typeof password === "string") return { password };
  return typeof password === "function" ? { password: () => password() } : {};
}

/** How values are read: truth values, whole numbers that a number holds, JSON; all else as text. */
function parserOf(oid: number): (text: string) => unknown {
  if (oid === 16) return (text) => text === "t";
  if (oid === 21 || oid === 23) return Number;
  return oid === 114 || oid === 3802 ? (text) => JSON.parse(text) as unknown : (text) => text;
}

/** Ends a connection without a word to the server, which may be frozen. */
export function destroy(client: PgClient): void {
  const connection: unknown = Reflect.get(client, "connection");
  const stream: unknown = Reflect.get(Object(connection), "stream");
  if (isDestroyable(stream)) stream.destroy();
  else void client.end().catch(() => {});
}

function isDestroyable(value: unknown): value is { destroy(): void } {
  return (
    typeof value === "object" && value !== null && "destroy" in value && typeof value.destroy === "function"
  );
}

/** Whether something between us and the server answers for it: then it names another process than the server does. */
export async function isPooled(client: PgClient): Promise<boolean> {
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  return Number(rows[0]?.pid) !== Reflect.get(client, "processID");
}

/** A connection as a lane uses it. Prepared statements are used where the connection surely stays on one server process. */
export function sessionOn(client: PgClient, schema: string, prepared: boolean): Session {
  const answerTo = async ({ name, text, values }: FunctionCall): Promise<unknown> => {
    const query: QueryArrayConfig = { text, values, rowMode: "array" };
    if (prepared) query.name = `holdfast_${name}`;
    const { rows } = await client.query(query);
    return rows[0]?.[0];
  };
  const session: Session = {
    onEnd: null,
    async call(verb, requests) {
      const [request, ...others] = requests;
      const one = request && others.length === 0 ? callOfOne(schema, verb, request) : undefined;
      if (one !== undefined) return [await answerTo(one)];
      const answers = await answerTo(callOfMany(schema, verb, requests));
      return Array.isArray(answers) ? answers : [];
    },
    end: () => client.end(),
    destroy: () => destroy(client),
  };
  client.on("end", () => session.onEnd?.());
  return session;
}

/** Rolled back in favour of others: serialization_failure, deadlock_detected. */
const rolledBack = new Set(["40001", "40P01"]);

/** Not for this server: read_only_sql_transaction. Another connection may lead to the new primary. */
const misdirected = new Set(["25006"]);

/** The connection was ended, maybe after the commit: connection_exception, operator_intervention, idle_in_transaction_session_timeout, internal_error. */
const cut = /^(?:08|57P|25P03$|XX)/;

/**
 * What an error of pg says about the call that it ended: a server that answers with an error has rolled it back, unless it
 * ends the connection. Its severity says so, too, but in the server's own language.
 */
export function judge(error: unknown): Verdict {
  const code: unknown = Reflect.get(Object(error), "code");
  const severity: unknown = Reflect.get(Object(error), "severity");
  if (typeof code !== "string" || typeof severity !== "string") return "unknown";
  if (severity === "FATAL" || severity === "PANIC" || cut.test(code)) return "unknown";
  if (rolledBack.has(code)) return "again";
  return misdirected.has(code) ? "stale" : "refused";
}

/** Whether an error says that the user lacks a right. */
export function isDenied(error: unknown): boolean {
  return Reflect.get(Object(error), "code") === "42501";
}

/** Whether an error says that the schema, a table or a routine is not there. */
export function isMissing(error: unknown): boolean {
  return ["42P01", "3F000", "42883"].includes(String(Reflect.get(Object(error), "code")));
}
