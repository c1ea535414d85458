/**
 * Transfers between accounts, each under the locks of both. Two names in one request are taken in sorted order, so
 * transfers in opposite directions cannot wait for each other.
 */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "holdfast";

const balances = new Map([
  ["alice", 100],
  ["bob", 100],
  ["carol", 100],
]);
const locks = await connect("memory:bank");

/** @type {(from: string, to: string, amount: number) => Promise<void>} */
async function transfer(from, to, amount) {
  await locks.request([`account:${from}`, `account:${to}`], { wait: "5s" }, async (set) => {
    const [source, target] = [balances.get(from) ?? 0, balances.get(to) ?? 0];
    if (source < amount) throw new Error(`${from} has only ${source}`);
    await pause(5, undefined, { signal: set.signal });
    // Between reading and writing somebody else could have come in, if this were not so:
    set.assertHeld();
    balances.set(from, source - amount);
    balances.set(to, target + amount);
  });
}

await Promise.all([
  transfer("alice", "bob", 30),
  transfer("bob", "alice", 10),
  transfer("bob", "carol", 50),
  transfer("carol", "alice", 20),
  transfer("alice", "carol", 5),
]);
await assert.rejects(transfer("carol", "bob", 1_000), /carol has only 135/);
console.log(Object.fromEntries(balances));

assert.deepEqual(Object.fromEntries(balances), { alice: 95, bob: 70, carol: 135 });
await locks.close();
