/** What a user of the package writes: type-checked and run against the packed tarball by scripts/check-package.mjs. */
import { connect, LockError, type Lock, type LockManager } from "holdfast";
import { formatSequencer, memoryGuard, parseSequencer } from "holdfast/fencing";
import { memoryBackend } from "holdfast/memory";
import { backendContract } from "holdfast/testing";

async function charge(locks: LockManager, order: string): Promise<bigint> {
  return locks.request(`order:${order}`, async (lock: Lock) => {
    lock.assertHeld();
    return lock.token;
  });
}

await using locks = await connect("memory:");
const first: bigint = await charge(locks, "42");
const second: bigint = await charge(locks, "42");
if (second <= first) throw new Error(`token ${second} does not follow ${first}`);

await using report = await locks.acquire("report", { ttl: "30s", wait: 5_000 });
const signal: AbortSignal = report.signal;
if (signal.aborted || !report.held) throw new Error("a lock that was just acquired is not held");

const busy: Lock | null = await locks.tryAcquire("report");
if (busy !== null) throw new Error("a held lock was granted twice");
await locks.request("report", { ifAvailable: true }, (lock) => {
  if (lock !== null) throw new Error("a held lock was granted twice");
});
const { held } = await locks.query();
if (held?.length !== 1) throw new Error(`one lock is held, not ${held?.length}`);

await using slot = await locks.semaphore("api", 10).acquire();
if (!slot.held) throw new Error("a free permit was not granted");

// A backend of one's own making, and an outcome that is told apart by its code.
await using own = await connect(memoryBackend());
// The library's timers keep no process alive, and here nothing else would.
const alive = setInterval(() => {}, 1_000);
try {
  await own.request("job", () => own.acquire("job", { wait: 10 }));
  throw new Error("a held lock was granted twice");
} catch (error) {
  if (!(error instanceof LockError) || error.code !== "LOCK_TIMEOUT") throw error;
} finally {
  clearInterval(alive);
}

// A guard at the resource, by the lock itself and by its sequencer.
const guard = memoryGuard();
const written: string = await guard.write("report", report, () => "written");
if (written !== "written") throw new Error("a guard does not give what its work gives");
const sequencer = parseSequencer(formatSequencer(report));
await guard.show("report", sequencer);
if ((await guard.highest("report")) !== report.token) throw new Error("a guard does not remember the token");

// Only registers cases, and so only where a test runner is: here it is enough that it is there.
if (typeof backendContract !== "function") throw new Error("holdfast/testing has no contract");
