/**
 * The pause story with real processes, on MySQL or MariaDB: a holder is stopped just before it writes, its lock goes to another
 * process, and when it wakes up its writes are refused, by the name of a resource and by a column of the row. It runs on the
 * server of MYSQL_URL, or starts one of its own.
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect } from "holdfast";
import { mysqlGuard } from "holdfast/fencing";
import { mysqlBackend } from "holdfast/mysql";
import { createPool } from "mysql2/promise";
import { startMysql } from "../scripts/lib/mysql-server.mjs";

const started = process.env["MYSQL_URL"] === undefined ? await startMysql() : undefined;
const url = process.env["MYSQL_URL"] ?? started?.url ?? "";
const pool = createPool({ uri: url, connectionLimit: 4 });
const backend = mysqlBackend({ pool });
const locks = await connect(backend);
const guard = mysqlGuard({ pool });

if (process.argv[2] === "to be stopped") {
  await beStopped();
  process.exit();
}

/** In a process of its own: gets the lock, is stopped, and wants to write all the same. */
async function beStopped() {
  const lock = await locks.acquire("invoices", { ttl: 500, renew: false });
  process.send?.(String(lock.token));
  // Here it is stopped. When it goes on, it does not look at its lock.
  await once(process, "message");
  const outcomes = await writeBoth(lock, "cancelled");
  await new Promise((resolve) => process.send?.(outcomes, resolve));
}

/**
 * Writes one invoice in a transaction that shows the token first, and another that keeps its token in its row.
 * @param {import("holdfast").Lock} holder
 * @param {string} state
 */
async function writeBoth(holder, state) {
  const both = await Promise.allSettled([
    guard.write("invoices", holder, (tx) => tx.query("UPDATE invoices SET state = ? WHERE id = 7", [state])),
    guard.update({ table: "invoices", key: { id: 8 }, holder, set: { state } }),
  ]);
  return both.map((one) => (one.status === "fulfilled" ? "written" : String(one.reason.code)));
}

// Once, by `holdfast migrate --store URL`: it makes the table that keeps tokens.
await backend.migrate();
await pool.query("DROP TABLE IF EXISTS invoices");
await pool.query("CREATE TABLE invoices (id INT PRIMARY KEY, state VARCHAR(20), fence BIGINT)");
await pool.query("INSERT INTO invoices VALUES (7, 'open', NULL), (8, 'open', NULL)");

const env = { ...process.env, MYSQL_URL: url };
const holder = fork(fileURLToPath(import.meta.url), ["to be stopped"], { env });
process.once("exit", () => holder.kill("SIGKILL"));
const [token] = await once(holder, "message");
holder.kill("SIGSTOP");
console.log(`a process got the lock with token ${token}, and was stopped before it wrote`);

const lock = await locks.acquire("invoices", { wait: "10s" });
const accepted = await writeBoth(lock, "sent");
console.log(
  `its ttl passed: the next holder got token ${lock.token}, and its writes were ${accepted.join(", ")}`,
);

const told = once(holder, "message");
holder.kill("SIGCONT");
holder.send("go on");
const [refused] = await told;
console.log(`the stopped process went on, and its writes were refused: ${refused.join(", ")}`);

assert.ok(lock.token > BigInt(token));
assert.deepEqual(accepted, ["written", "written"]);
assert.deepEqual(refused, ["LOCK_STALE_TOKEN", "LOCK_STALE_TOKEN"]);
const [rows] = await pool.query("SELECT id, state FROM invoices ORDER BY id");
console.log(rows);
assert.deepEqual(rows, [
  { id: 7, state: "sent" },
  { id: 8, state: "sent" },
]);
await lock.release();
await locks.close();
await pool.end();
await started?.server.remove();
