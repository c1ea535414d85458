/** PostgreSQL for the tests: a server of the file's own, or the one that the environment gives, and a database for each suite. */
import { randomBytes } from "node:crypto";
import { Client, type QueryResultRow } from "pg";
import { startPostgres } from "../../scripts/lib/postgres-server.mjs";
import type { ServerProcess } from "../../scripts/lib/server-process.mjs";

/** A server for the tests of one file. */
export interface TestPostgres {
  readonly url: string;
  /** Undefined where the environment gives a server, which is nobody's to break. */
  readonly server: ServerProcess | undefined;
  /** The URL of a fresh database. */
  database(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a server, or takes the given one. `durable`: it waits for the disk, as it comes. */
export async function testPostgres(options: { readonly durable?: boolean } = {}): Promise<TestPostgres> {
  const given = process.env["HOLDFAST_TEST_POSTGRES_URL"];
  const started = given === undefined ? await startPostgres(options) : undefined;
  const url = given ?? started?.url ?? "";
  return {
    url,
    server: started?.server,
    async database() {
      const name = `holdfast_test_${randomBytes(6).toString("hex")}`;
      await sql(url, `CREATE DATABASE ${name} TEMPLATE template0`);
      return Object.assign(new URL(url), { pathname: `/${name}` }).href;
    },
    stop: async () => started?.server.remove(),
  };
}

/** Runs SQL on a connection of its own. */
export async function sql(url: string, text: string, values?: unknown[]): Promise<QueryResultRow[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
