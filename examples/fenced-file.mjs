/**
 * The pause story with real processes: a holder is stopped just before it writes a file, its lock goes to another process,
 * and when it wakes up its write is refused. The file is replaced as a whole; nobody waits for the stopped one.
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "holdfast";
import { fileGuard } from "holdfast/fencing";

const folder = process.env["REPORT_FOLDER"] ?? (await mkdtemp(join(tmpdir(), "holdfast-example-")));
const path = join(folder, "report.json");
const locks = await connect(`sqlite:${join(folder, "locks.db")}`);
const guard = fileGuard();

if (process.env["REPORT_FOLDER"] !== undefined) {
  await beStopped();
  process.exit();
}

/** In a process of its own: gets the lock, is stopped, and wants to write all the same. */
async function beStopped() {
  // Without renewals: whoever is stopped in the middle of a write to SQLite's file keeps all others out of it.
  const lock = await locks.acquire("report", { ttl: 500, renew: false });
  process.send?.(`granted ${lock.token}`);
  // Here it is stopped. When it goes on, it does not look at its lock.
  await once(process, "message");
  const outcome = await guard.write(path, lock, "from the stopped one").then(
    () => "written",
    (error) => error.code,
  );
  await new Promise((resolve) => process.send?.(outcome, resolve));
}

const holder = fork(fileURLToPath(import.meta.url), { env: { ...process.env, REPORT_FOLDER: folder } });
const [granted] = await once(holder, "message");
holder.kill("SIGSTOP");
const lock = await locks.acquire("report", { wait: "10s" });
await guard.write(path, lock, "from the next holder");
const told = once(holder, "message");
holder.kill("SIGCONT");
holder.send("go on");
const [outcome] = await told;
console.log(`${granted}, then stopped; next token ${lock.token}; the stopped one's write: ${outcome}`);

assert.equal(outcome, "LOCK_STALE_TOKEN");
assert.equal(await readFile(path, "utf8"), "from the next holder");
await lock.release();
await locks.close();
await rm(folder, { recursive: true });
