/**
 * A partner's API that allows three calls at a time, whoever makes them: a semaphore. A heavy call takes two permits,
 * and light ones that come later do not overtake it.
 */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "holdfast";

const locks = await connect("memory:partner");
const slots = locks.semaphore("partner-api", 3);
let running = 0;
let most = 0;
/** @type {string[]} */
const started = [];

/** @type {(call: string, weight?: number) => Promise<void>} */
async function callPartner(call, weight = 1) {
  await slots.request({ weight, wait: "10s" }, async (permit) => {
    started.push(call);
    running += weight;
    most = Math.max(most, running);
    await pause(20, undefined, { signal: permit.signal });
    running -= weight;
  });
}

await Promise.all([
  callPartner("a"),
  callPartner("b"),
  callPartner("heavy", 2),
  callPartner("c"),
  callPartner("d"),
]);
console.log(`started in the order ${started.join(", ")}; at most ${most} permits were in use`);

assert.deepEqual(started, ["a", "b", "heavy", "c", "d"]);
assert.equal(most, 3);
await locks.close();
