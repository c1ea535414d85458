/**
 * A flash sale that must not oversell, three ways that are each right: a row lock in the buyer's own transaction, a version
 * instead of a lock, and a lease with a fence. It runs on the PostgreSQL of DATABASE_URL, or starts one of its own.
 */
import assert from "node:assert/strict";
import { connect } from "holdfast";
import { fencedUpdate, postgresBackend, rowLock, updateVersioned } from "holdfast/postgres";
import { Pool } from "pg";
import { startPostgres } from "../scripts/lib/postgres-server.mjs";

const [stock, buyers] = [12, 30];
const started = process.env["DATABASE_URL"] === undefined ? await startPostgres() : undefined;
const pool = new Pool({ connectionString: process.env["DATABASE_URL"] ?? started?.url, max: 8 });
const backend = postgresBackend({ pool });
await backend.migrate();
const locks = await connect(backend);
await pool.query("DROP TABLE IF EXISTS goods");
await pool.query(
  "CREATE TABLE goods (id integer PRIMARY KEY, stock integer NOT NULL, version integer NOT NULL DEFAULT 0, fence bigint)",
);

/** Pessimistic: read and write in one transaction, under a lock that ends with it. */
async function buyUnderRowLock(/** @type {number} */ id) {
  const tx = await pool.connect();
  try {
    await tx.query("BEGIN");
    await rowLock(tx, `goods:${id}`);
    const left = await stockOf(tx, id);
    if (left > 0) await tx.query("UPDATE goods SET stock = $1 WHERE id = $2", [left - 1, id]);
    await tx.query("COMMIT");
    return left > 0;
  } finally {
    tx.release();
  }
}

/** Optimistic: write only if nobody has written since it was read. */
async function buyByVersion(/** @type {number} */ id) {
  const { outcome } = await updateVersioned(pool, {
    table: "goods",
    key: { id },
    change: ({ stock: left }) => (Number(left) > 0 ? { stock: Number(left) - 1 } : null),
    tries: 500,
  });
  assert.notEqual(outcome, "conflict");
  return outcome === "updated";
}

/** A lease: the work may take longer than a transaction should, and the fence refuses whoever is too late. */
async function buyUnderLease(/** @type {number} */ id) {
  return locks.request(`goods:${id}`, async ({ token }) => {
    const left = await stockOf(pool, id);
    if (left === 0) return false;
    return fencedUpdate(pool, { table: "goods", key: { id }, token, set: { stock: left - 1 } });
  });
}

async function stockOf(/** @type {Pick<Pool, "query">} */ client, /** @type {number} */ id) {
  const { rows } = await client.query("SELECT stock FROM goods WHERE id = $1", [id]);
  return Number(rows[0].stock);
}

for (const [id, buy] of [buyUnderRowLock, buyByVersion, buyUnderLease].entries()) {
  await pool.query("INSERT INTO goods (id, stock) VALUES ($1, $2)", [id, stock]);
  const sold = await Promise.all(Array.from({ length: buyers }, () => buy(id)));
  const count = sold.filter(Boolean).length;
  console.log(`${buy.name}: ${count} of ${stock} sold to ${buyers} buyers, ${await stockOf(pool, id)} left`);
  assert.equal(count, stock);
  assert.equal(await stockOf(pool, id), 0);
}
assert.ok((await locks.query()).held.length === 0);

await locks.close();
await pool.end();
await started?.server.remove();
