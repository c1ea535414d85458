/** Locks, versions and fences in the user's own transactions on MySQL or MariaDB. */
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
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
