/** MariaDB or MySQL for the tests: a server of the file's own, or the one that the environment gives, and a database for each suite. */
import { randomBytes } from "node:crypto";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { mysql9 } from "../../scripts/lib/mysql-9.mjs";
import { startMysql, startMysql9 } from "../../scripts/lib/mysql-server.mjs";
import type { ServerProcess } from "../../scripts/lib/server-process.mjs";

/** A server for the tests of one file. */
export interface TestMysql {
  readonly url: string;
  /** Undefined where the environment gives a server, which is nobody's to break. */
  readonly server: ServerProcess | undefined;
  /** The URL of a fresh database. */
  database(): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a MariaDB with these settings, or takes the server that is given. */
export function testMysql(settings: readonly string[] = []): Promise<TestMysql> {
  return givenOrStarted("HOLDFAST_TEST_MYSQL_URL", () => startMysql({ settings }));
}

/** Starts a MySQL 9, or takes the one that is given. */
export function testMysql9(): Promise<TestMysql> {
  return givenOrStarted(mysql9.url, startMysql9);
}

async function givenOrStarted(
  variable: string,
  start: () => ReturnType<typeof startMysql>,
): Promise<TestMysql> {
  const given = process.env[variable];
  const started = given === undefined ? await start() : undefined;
  const url = given ?? started?.url ?? "";
  return {
    url,
    server: started?.server,
    async database() {
      const name = `holdfast_test_${randomBytes(6).toString("hex")}`;
      await sql(url, `CREATE DATABASE ${name}`);
      return Object.assign(new URL(url), { pathname: `/${name}` }).href;
    },
    stop: async () => started?.server.remove(),
  };
}

/** Runs SQL on a connection of its own. */
export async function sql(url: string, text: string, values: string[] = []): Promise<RowDataPacket[]> {
  const connection = await createConnection({ uri: url });
  try {
    const [rows] = await connection.query<RowDataPacket[]>(text, values);
    return rows;
  } finally {
    await connection.end();
  }
}
