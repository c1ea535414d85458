/** Locks, versions and fences in the user's own transactions on MySQL or MariaDB. */
import { createConnection, createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  fence,
  fencedUpdate,
  mysqlBackend,
  rowLock,
  sessionLock,
  updateVersioned,
} from "../../src/backends/mysql/index.ts";
import { sql, type TestMysql, testMysql } from "../helpers/mysql.ts";
import { sqlTransactions, type Tx } from "../helpers/sql-transactions.ts";

let server: TestMysql;
let url = "";
let pool: Pool;

beforeAll(async () => {
  server = await testMysql();
  url = await server.database();
  pool = createPool({ uri: url, connectionLimit: 12 });
});

afterAll(async () => {
  await pool.end();
  await server.stop();
});

async function begin(begins = true): Promise<Tx> {
  const connection = await pool.getConnection();
  if (begins) await connection.beginTransaction();
  return {
    rowLock: (name, options) => rowLock(connection, name, options),
    updateVersioned: (change) => updateVersioned(connection, change),
    fencedUpdate: (change) => fencedUpdate(connection, change),
    fence: (resource, token) => fence(connection, resource, token),
    async sql(text) {
      const [rows] = await connection.query<RowDataPacket[]>(text);
      return Array.isArray(rows) ? rows : [];
    },
    async end(how) {
      if (begins) await connection.query(how);
      connection.release();
    },
  };
}

sqlTransactions("mysql", () => ({
  backend: () => mysqlBackend({ url }),
  begin,
  onPool: () => ({
    rowLock: (name, options) => rowLock(pool, name, options),
    fence: (resource, token) => fence(pool, resource, token),
    sessionLock: (name) => sessionLock(pool, name),
  }),
  rowLocks: "holdfast_row_locks",
}));

it("a session's lock excludes others, whatever the case of its name, until it is released", async () => {
  const [a, b] = [await pool.getConnection(), await pool.getConnection()];
  const held = await sessionLock(a, "n".repeat(300));
  expect(await sessionLock(b, "n".repeat(300), { nowait: true })).toBe(null);
  const upper = await sessionLock(b, "N".repeat(300), { nowait: true });
  expect(upper).not.toBe(null);
  await upper?.release();
  await held?.release();
  const next = await sessionLock(b, "n".repeat(300), { wait: "1s" });
  await next?.release();
  a.release();
  b.release();
});

it("a session's lock that ended with its connection is not released by another one", async () => {
  const first = await pool.getConnection();
  const second = await pool.getConnection();
  let current = first;
  // What a driver that reconnects in silence does.
  const swapped = { query: (text: string, values?: unknown[]) => current.query(text, values) };
  const held = await sessionLock(swapped, "swapped");
  current = second;
  await sql(url, `KILL ${first.threadId}`);
  await expect(held?.release()).rejects.toMatchObject({ code: "LOCK_LOST" });
  first.destroy();
  second.release();
});

it("names and values are what they are, whatever a backslash means to the connection", async () => {
  await sql(
    url,
    "CREATE TABLE quotes (id VARCHAR(50) PRIMARY KEY, body VARCHAR(50), version INT, fence BIGINT)",
  );
  await sql(url, "INSERT INTO quotes VALUES ('a', 'a', 1, NULL), ('b', 'b', 1, NULL)");
  const connection = await pool.getConnection();
  await connection.query("SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'");
  await connection.beginTransaction();
  const tricks = ["it's", "a\\\\", "a' OR 1=1 -- ", '"', "x'), ('y"];
  for (const trick of tricks) {
    expect(await rowLock(connection, trick)).toBe(true);
    expect(await rowLock(connection, trick, { skipLocked: true })).toBe(true);
    await fence(connection, trick, 1n);
    const write = { table: "quotes", key: { id: trick }, token: 1n, set: { body: trick } };
    expect(await fencedUpdate(connection, write)).toBe(false);
    const change = { ...write, change: () => ({ body: trick }) };
    expect(await updateVersioned(connection, change)).toEqual({ outcome: "missing" });
  }
  const [rows] = await connection.query<RowDataPacket[]>(
    "SELECT CONVERT(name USING utf8mb4) AS name FROM holdfast_row_locks",
  );
  expect(rows.map(({ name }) => String(name))).toEqual(expect.arrayContaining(tricks));
  await connection.rollback();
  connection.destroy();
});

it("a row lock excludes connections with other charsets", async () => {
  const [a, b] = [
    await createConnection({ uri: url, charset: "latin1_swedish_ci" }),
    await createConnection({ uri: url }),
  ];
  await a.beginTransaction();
  await b.beginTransaction();
  expect(await rowLock(a, "é")).toBe(true);
  expect(await rowLock(b, "é", { skipLocked: true })).toBe(false);
  await Promise.all([a.end(), b.end()]);
});
