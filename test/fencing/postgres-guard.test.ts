/** The guard for SQL on PostgreSQL. */
import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import { postgresGuard } from "../../src/fencing/index.ts";
import { sql, type TestPostgres, testPostgres } from "../helpers/postgres.ts";
import { sqlGuardCases } from "./sql-cases.ts";

let server: TestPostgres;
let url = "";
let pool: Pool;

beforeAll(async () => {
  server = await testPostgres();
  url = await server.database();
  pool = new Pool({ connectionString: url, max: 10 });
  pool.on("error", () => {});
  const backend = postgresBackend({ url });
  await backend.migrate();
  await backend.close();
  await pool.query("CREATE TABLE docs (id INT PRIMARY KEY, body VARCHAR(100), fence BIGINT)");
});

afterAll(async () => {
  await pool.end();
  await server.stop();
});

sqlGuardCases<PoolClient>("postgres", () => ({
  guard: () => postgresGuard<PoolClient>({ pool }),
  elsewhere: () => postgresGuard<PoolClient>({ pool, schema: "elsewhere" }),
  async cut(tx) {
    const { rows } = await tx.query("SELECT pg_backend_pid() AS pid");
    await sql(url, "SELECT pg_terminate_backend($1, 5000)", [rows[0]?.pid]);
  },
  rows: async (text) => (await pool.query(text)).rows,
}));

it("a statement that failed and was passed over is no success: nothing was written", async () => {
  await pool.query("INSERT INTO docs VALUES (5000, NULL, NULL)");
  const writing = postgresGuard({ pool }).write("passed over", 7n, async (tx) => {
    await tx.query("UPDATE docs SET body = 'half' WHERE id = 5000");
    await tx.query("SELECT 1 / 0").catch(() => {});
  });
  await expect(writing).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE", backend: "postgres" });
  expect((await pool.query("SELECT body FROM docs WHERE id = 5000")).rows).toEqual([{ body: null }]);
});
