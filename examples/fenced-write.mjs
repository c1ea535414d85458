/**
 * A write that arrives late, after its lock was lost: the guard compares tokens and refuses it. No clock is needed for
 * that, which is why it holds where a ttl alone does not. Here the resource lives in the same process.
 */
import assert from "node:assert/strict";
import { connect } from "holdfast";
import { memoryGuard } from "holdfast/fencing";

const guard = memoryGuard();
const row = { value: "empty" };
const locks = await connect("memory:rows");

// Without renewal this lock ends after its ttl, as it would for a process that was paused.
const paused = await locks.acquire("row:7", { ttl: 100, renew: false });
// Keeps the process alive while it waits: the library's own timers do not.
const alive = setInterval(() => {}, 1_000);
const next = await locks.acquire("row:7", { wait: "5s" });
clearInterval(alive);
assert.ok(next.token > paused.token);

await guard.write("row:7", next, () => {
  row.value = "from the next holder";
});
await guard.write("row:7", next, async () => {
  row.value = "again from the next holder";
});
const late = guard.write("row:7", paused, () => {
  row.value = "from the paused one, too late";
});
await assert.rejects(late, { code: "LOCK_STALE_TOKEN", lock: "row:7" });
console.log(
  `paused.held: ${paused.held}; its release says: ${await paused.release()}; the row: ${row.value}`,
);

assert.equal(paused.held, false);
assert.equal(row.value, "again from the next holder");
await next.release();
await locks.close();
