/**
 * A write that arrives late, after its lock was lost: the resource compares tokens and refuses it. No clock is needed
 * for that, which is why it holds where a ttl alone does not.
 */
import assert from "node:assert/strict";
import { connect, LockError } from "holdfast";

/** One row of a table. In SQL: UPDATE … SET value = $1, token = $2 WHERE id = $3 AND token <= $2, and look at the count. */
class Row {
  value = "empty";
  #token = 0n;

  /** @type {(value: string, token: bigint) => void} */
  write(value, token) {
    if (token < this.#token) {
      throw new LockError("LOCK_STALE_TOKEN", `token ${token} is older than ${this.#token}`);
    }
    this.#token = token;
    this.value = value;
  }
}

const row = new Row();
const locks = await connect("memory:rows");

// Without renewal this lock ends after its ttl, as it would for a process that was stopped.
const slow = await locks.acquire("row:7", { ttl: 100, renew: false });
// Keeps the process alive while it waits: the library's own timers do not.
const alive = setInterval(() => {}, 1_000);
const next = await locks.acquire("row:7", { wait: "5s" });
clearInterval(alive);
assert.ok(next.token > slow.token);

row.write("from the next holder", next.token);
row.write("again from the next holder", next.token);
assert.throws(
  () => row.write("from the slow one, too late", slow.token),
  (error) => error instanceof LockError && error.code === "LOCK_STALE_TOKEN",
);
console.log(`slow.held: ${slow.held}; its release says: ${await slow.release()}; the row: ${row.value}`);

assert.equal(slow.held, false);
assert.equal(row.value, "again from the next holder");
await next.release();
await locks.close();
