/**
 * A nightly job that several instances of a service start at the same moment, and that one of them runs. What one
 * instance cannot know from the lock alone is whether the job was done already tonight: that is written down.
 */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "holdfast";

/** @type {Set<string>} what a database table would be: the nights that are done */
const done = new Set();

/** @type {(instance: string, night: string) => Promise<"ran" | "busy" | "done before">} */
async function runNightly(instance, night) {
  const locks = await connect("memory:nightly", { label: instance });
  try {
    return await locks.request("nightly-report", { ifAvailable: true, maxHold: "10m" }, async (lock) => {
      if (lock === null) return "busy";
      if (done.has(night)) return "done before";
      for (let page = 1; page <= 3; page++) {
        lock.assertHeld();
        await pause(20, undefined, { signal: lock.signal });
      }
      done.add(night);
      return "ran";
    });
  } finally {
    await locks.close();
  }
}

const night = "2026-01-01";
const atOnce = await Promise.all(["a", "b", "c"].map((instance) => runNightly(instance, night)));
const late = await runNightly("d", night);
console.log(`at once: ${atOnce.join(", ")}; the late one: ${late}`);

assert.deepEqual(atOnce, ["ran", "busy", "busy"]);
assert.equal(late, "done before");
