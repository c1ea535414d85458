/** Locks, versions and fences in the user's own transactions on PostgreSQL. */
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  advisoryLock,
  fence,
  fencedUpdate,
  postgresBackend,
  rowLock,
  sessionLock,
  updateVersioned,
} from "../../src/backends/postgres/index.ts";
import { type TestPostgres, testPostgres } from "../helpers/postgres.ts";
import { sqlTransactions, type Tx } from "../helpers/sql-transactions.ts";

let server: TestPostgres;
let url = "";
let pool: Pool;

beforeAll(async () => {
  server = await testPostgres();
  url = await server.database();
  pool = new Pool({ connectionString: url, max: 12 });
});

afterAll(async () => {
  await pool.end();
  await server.stop();
});

async function begin(begins = true): Promise<Tx> {
  const client = await pool.connect();
  if (begins) await client.query("BEGIN");
  return {
    rowLock: (name, options) => rowLock(client, name, options),
    updateVersioned: (change) => updateVersioned(client, change),
    fencedUpdate: (change) => fencedUpdate(client, change),
    fence: (resource, token) => fence(client, resource, token),
    sql: async (text) => (await client.query(text)).rows,
    async end(how) {
      if (begins) await client.query(how);
      client.release();
    },
  };
}

sqlTransactions("postgres", () => ({
  backend: () => postgresBackend({ url }),
  begin,
  onPool: () => ({
    rowLock: (name, options) => rowLock(pool, name, options),
    fence: (resource, token) => fence(pool, resource, token),
    sessionLock: (name) => sessionLock(pool, name),
  }),
  rowLocks: "holdfast.row_locks",
}));

it("an advisory lock ends with the transaction, and busy is a value or a typed error", async () => {
  const [a, b] = [await pool.connect(), await pool.connect()];
  await a.query("BEGIN");
  await b.query("BEGIN");
  expect(await advisoryLock(a, "job")).toBe(true);
  expect(await advisoryLock(b, "job", { skipLocked: true })).toBe(false);
  await expect(advisoryLock(b, "job", { nowait: true })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  await a.query("COMMIT");
  expect(await advisoryLock(b, "job", { nowait: true })).toBe(true);
  await b.query("ROLLBACK");
  a.release();
  b.release();
});

it("a session's lock lasts until it is released or the connection ends", async () => {
  const [a, b] = [await pool.connect(), await pool.connect()];
  const held = await sessionLock(a, "session");
  expect(await sessionLock(b, "session", { nowait: true })).toBe(null);
  await held?.release();
  const next = await sessionLock(b, "session", { nowait: true });
  expect(next).not.toBe(null);
  b.release(true);
  const last = await sessionLock(a, "session");
  await last?.release();
  a.release();
});

it("a session's lock that ended with its connection is not released by another one", async () => {
  const [first, second] = [await pool.connect(), await pool.connect()];
  let current = first;
  const swapped = { query: (text: string, values?: unknown[]) => current.query(text, values) };
  const held = await sessionLock(swapped, "swapped");
  current = second;
  await expect(held?.release()).rejects.toMatchObject({ code: "LOCK_LOST" });
  current = first;
  await held?.release();
  await expect(held?.release()).rejects.toMatchObject({ code: "LOCK_LOST" });
  first.release();
  second.release();
});

it("a transaction is recognised on whatever acts like a client, and before BEGIN was answered", async () => {
  const client = await pool.connect();
  const begun = client.query("BEGIN");
  const like = { query: (text: string, values?: unknown[]) => client.query(text, values) };
  expect(await rowLock(client, "early")).toBe(true);
  expect(await rowLock(like, "early")).toBe(true);
  expect(await advisoryLock(like, "early")).toBe(true);
  await begun;
  await client.query("COMMIT");
  await expect(advisoryLock(client, "late")).rejects.toMatchObject({ code: "LOCK_INVALID" });
  client.release();
});
