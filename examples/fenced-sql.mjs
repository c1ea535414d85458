/**
 * The late write of a paused holder, refused by a database: in the transaction that writes, by the name of a resource, or
 * in the statement that writes, by a column of the row. It runs on the PostgreSQL of DATABASE_URL, or starts one of its own.
 */
import assert from "node:assert/strict";
import { connect } from "holdfast";
import { postgresGuard } from "holdfast/fencing";
import { postgresBackend } from "holdfast/postgres";
import { Pool } from "pg";
import { startPostgres } from "../scripts/lib/postgres-server.mjs";

const started = process.env["DATABASE_URL"] === undefined ? await startPostgres() : undefined;
const pool = new Pool({ connectionString: process.env["DATABASE_URL"] ?? started?.url, max: 4 });
const backend = postgresBackend({ pool });
// Once, by `holdfast migrate --store URL`: it makes the table that keeps tokens.
await backend.migrate();
const locks = await connect(backend);
const guard = postgresGuard({ pool });
await pool.query("DROP TABLE IF EXISTS invoices");
await pool.query("CREATE TABLE invoices (id integer PRIMARY KEY, state text, fence bigint)");
await pool.query("INSERT INTO invoices VALUES (7, 'open', NULL), (8, 'open', NULL)");

const paused = await locks.acquire("invoices", { ttl: 300, renew: false });
const next = await locks.acquire("invoices", { wait: "5s" });

// Whatever a transaction writes: the guard shows the token first, in the same transaction.
await guard.write("invoices", next, async (tx) => {
  await tx.query("UPDATE invoices SET state = 'sent' WHERE id = 7");
});
const late = guard.write("invoices", paused, async (tx) => {
  await tx.query("UPDATE invoices SET state = 'cancelled' WHERE id = 7");
});
await assert.rejects(late, { code: "LOCK_STALE_TOKEN" });

// One row that keeps its own token.
const row = { table: "invoices", key: { id: 8 } };
await guard.update({ ...row, holder: next, set: { state: "sent" } });
await assert.rejects(guard.update({ ...row, holder: paused, set: { state: "cancelled" } }), {
  code: "LOCK_STALE_TOKEN",
});

const { rows } = await pool.query("SELECT id, state FROM invoices ORDER BY id");
console.log(rows);
assert.deepEqual(
  rows.map(({ state }) => state),
  ["sent", "sent"],
);
await next.release();
await locks.close();
await pool.end();
await started?.server.remove();
