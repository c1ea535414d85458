/** The guard for SQL on MySQL or MariaDB. */
import { createPool as createCallbackPool } from "mysql2";
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { mysqlGuard } from "../../src/fencing/index.ts";
import { sql, type TestMysql, testMysql } from "../helpers/mysql.ts";
import { sqlGuardCases } from "./sql-cases.ts";

let server: TestMysql;
let url = "";
let pool: Pool;

beforeAll(async () => {
  server = await testMysql();
  url = await server.database();
  pool = createPool({ uri: url, connectionLimit: 10 });
  const backend = mysqlBackend({ url });
  await backend.migrate();
  await backend.close();
  await pool.query("CREATE TABLE docs (id INT PRIMARY KEY, body VARCHAR(100), fence BIGINT)");
});

afterAll(async () => {
  await pool.end();
  await server.stop();
});

sqlGuardCases<PoolConnection>("mysql", () => ({
  guard: () => mysqlGuard({ pool }),
  elsewhere: () => mysqlGuard({ pool, prefix: "elsewhere_" }),
  cut: async (tx) => void (await sql(url, `KILL ${tx.threadId}`)),
  async rows(text) {
    const [rows] = await pool.query<RowDataPacket[]>(text);
    return Array.isArray(rows) ? rows : [];
  },
}));

it("a row is written for good even by connections that do not commit by themselves", async () => {
  await pool.query("INSERT INTO docs VALUES (6000, NULL, NULL)");
  const careless = createPool({ uri: url, connectionLimit: 1 });
  await careless.query("SET autocommit = 0");
  await mysqlGuard({ pool: careless }).update({
    table: "docs",
    key: { id: 6000 },
    holder: 7n,
    set: { body: "written" },
  });
  expect(await sql(url, "SELECT body FROM docs WHERE id = 6000")).toEqual([{ body: "written" }]);
  await careless.end();
});

it("the highest token is what it is now, also by connections that do not commit by themselves", async () => {
  const careless = createPool({ uri: url, connectionLimit: 1 });
  await careless.query("SET autocommit = 0");
  const guard = mysqlGuard({ pool: careless });
  expect(await guard.highest("seen")).toBe(null);
  await mysqlGuard({ pool }).show("seen", 7n);
  expect(await guard.highest("seen")).toBe(7n);
  await careless.end();
});

it("a pool that gives no promises is refused", async () => {
  const callbacks = createCallbackPool({ uri: url });
  const untyped: (options: never) => unknown = mysqlGuard;
  expect(() => Reflect.apply(untyped, null, [{ pool: callbacks }])).toThrow(/mysql2\/promise/);
  await callbacks.promise().end();
});
