/** The SQL that a client of PostgreSQL sends, beside the schema; when it is sent is left to the files that use it. */
import type { Verb } from "../../sql/wire.ts";

/** A schema's name as it stands in SQL text; it was checked before. */
export function quoted(schema: string): string {
  return `"${schema}"`;
}

/** What the functions that take one request take, in their order. */
const parameters: Readonly<Partial<Record<Verb, readonly string[]>>> = {
  append: ["queue", "id", "writer", "weight", "permits", "ttl", "demand", "channel", "about", "again"],
  remove: ["queue", "id", "evict", "seq"],
};

/** How a function of the schema is called. */
export interface FunctionCall {
  /** The name of the function. */
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** Calls the function for one request: the common case, and cheaper for the server. Undefined where there is none. */
export function callOfOne(schema: string, verb: Verb, request: object): FunctionCall | undefined {
  const names = parameters[verb];
  if (names === undefined) return undefined;
  const marks = names.map((_, index) => `$${index + 1}`).join();
  const values = names.map((name): unknown => Reflect.get(request, name));
  return { name: verb, text: `SELECT ${quoted(schema)}.${verb}(${marks})`, values };
}

/** Calls the function for many requests, which are one array. */
export function callOfMany(schema: string, verb: Verb, requests: readonly object[]): FunctionCall {
  const name = parameters[verb] === undefined ? verb : `${verb}_all`;
  return { name, text: `SELECT ${quoted(schema)}.${name}($1)`, values: [JSON.stringify(requests)] };
}

/**
 * Settings on which the promises rest, for a connection of our own. `synchronous_commit` is only ever made stronger: what
 * is granted must survive a crash. Index scans remember dead rows, which bitmap scans visit again and again.
 */
export function settingsOf(deadlineMs: number): string {
  return `SET default_transaction_isolation = 'read committed';
SET statement_timeout = ${Math.ceil(deadlineMs)}; SET lock_timeout = 0; SET jit = off;
SET enable_bitmapscan = off; SET enable_seqscan = off;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`;
}

/** The version of the schema; fails if there is none. */
export function versionOf(schema: string): string {
  return `SELECT max(version) AS version FROM ${quoted(schema)}.versions`;
}

/** Begins a migration, for which the limits of the role do not hold. */
export const beginMigration: string = `BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`;

/** Takes the lock of migrations, which ends with the transaction, if nobody has it. */
export function tryMigration(schema: string): string {
  return `SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast migration of ${schema}', 0)) AS taken`;
}

/** Makes sure that there is a table of versions. Who may create tables in a schema may not have the right to create schemas. */
export function createVersions(schema: string): string {
  return `DO $$ BEGIN
  IF to_regnamespace('${quoted(schema)}') IS NULL THEN CREATE SCHEMA ${quoted(schema)}; END IF;
END $$;
CREATE TABLE IF NOT EXISTS ${quoted(schema)}.versions (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`;
}

/** Notes that a version was applied. */
export function noteVersion(schema: string, version: number): string {
  return `INSERT INTO ${quoted(schema)}.versions (version) VALUES (${version})`;
}
