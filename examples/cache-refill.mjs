/**
 * A cache that many read under a shared lock and one refills under the exclusive one, so that an expired entry costs
 * one trip to the slow source however many ask for it at once.
 */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "holdfast";

const locks = await connect("memory:cache");
/** @type {Map<string, string>} */
const cache = new Map();
let trips = 0;

/** @type {(key: string) => Promise<string>} */
async function slowSource(key) {
  trips += 1;
  await pause(30);
  return `${key} of trip ${trips}`;
}

/** @type {(key: string) => Promise<string>} */
async function read(key) {
  const found = await locks.request(`cache:${key}`, { mode: "shared" }, () => cache.get(key));
  if (found !== undefined) return found;
  return locks.request(`cache:${key}`, async (lock) => {
    // Those who waited here look again: the first of them has filled it.
    const filled = cache.get(key);
    if (filled !== undefined) return filled;
    const fresh = await slowSource(key);
    lock.assertHeld();
    cache.set(key, fresh);
    return fresh;
  });
}

const answers = await Promise.all(Array.from({ length: 10 }, () => read("price")));
console.log(
  `${answers.length} readers got ${[...new Set(answers)].join(", ")}; trips to the source: ${trips}`,
);

assert.deepEqual([...new Set(answers)], ["price of trip 1"]);
assert.equal(trips, 1);
await locks.close();
