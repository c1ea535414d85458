/** One process of a fleet: opens the contender and takes the lock as it is told; what comes of it is worked out in fleet.mjs. */
import { setTimeout as pause } from "node:timers/promises";
import { loadSuite } from "./suites.mjs";

/** @import { Job } from "./types.ts" */

/**
 * @typedef {object} Turn times are by the machine's monotonic clock
 * @property {string} waiter
 * @property {number} askedUs
 * @property {number} enteredUs
 * @property {number} leftUs
 * @property {string | null} token where a contender has one: its place in the order of the store
 */
/** @typedef {{ word: string, turns: Turn[], cpuUs: number, error?: string }} Report */
/**
 * @typedef {(
 *   | { do: "hold", name: string }
 *   | { do: "leave" }
 *   | { do: "ask", name: string, waiters: number, holdMs: number, everyMs: number, afterMs: number }
 *   | { do: "loop", name: string, waiters: number, holdMs: number, ms: number }
 * )} Order
 */

/** @type {Job} */
const job = JSON.parse(process.argv[2] ?? "");
const suite = await loadSuite(job.suite);
const contender = suite.contenders.find(({ name }) => name === job.contender);
if (contender === undefined) throw new Error(`suite ${suite.name} has no ${job.contender}`);
const subject = await contender.open(job.context);
if (!isLock(subject)) throw new Error(`${job.contender} has no request(name, run)`);

let leave = () => {};

/** @param {Order} order @returns {Promise<Turn[]>} */
async function obey(order) {
  if (order.do === "hold") return [await hold(order.name)];
  if (order.do === "ask") return ask(order);
  if (order.do === "loop") return loop(order);
  leave();
  return [];
}

/** Holds until it is told to leave. */
function hold(/** @type {string} */ name) {
  return takeTurn(name, "holder", () => {
    say({ word: "holding", turns: [], cpuUs: 0 });
    return new Promise((resolve) => {
      leave = () => resolve(undefined);
    });
  });
}

/** Each waiter asks once. @param {Extract<Order, { do: "ask" }>} order */
async function ask({ name, waiters, holdMs, everyMs, afterMs }) {
  const turns = [];
  await pause(afterMs);
  for (let waiter = 0; waiter < waiters; waiter++) {
    turns.push(takeTurn(name, waiterName(waiter), () => pause(holdMs)));
    await pause(everyMs);
  }
  // What was asked last stands in line by now.
  await pause(20);
  say({ word: "asked", turns: [], cpuUs: 0 });
  return Promise.all(turns);
}

/** Each waiter asks again and again. @param {Extract<Order, { do: "loop" }>} order */
async function loop({ name, waiters, holdMs, ms }) {
  const until = performance.now() + ms;
  const loops = Array.from({ length: waiters }, async (_, waiter) => {
    const turns = [];
    while (performance.now() < until) {
      turns.push(await takeTurn(name, waiterName(waiter), () => pause(holdMs)));
    }
    return turns;
  });
  return (await Promise.all(loops)).flat();
}

function waiterName(/** @type {number} */ waiter) {
  return `${process.argv[3]}.${waiter}`;
}

/** @param {string} name @param {string} waiter @param {() => Promise<unknown>} work @returns {Promise<Turn>} */
async function takeTurn(name, waiter, work) {
  /** @type {Turn} */
  const turn = { waiter, askedUs: nowUs(), enteredUs: 0, leftUs: 0, token: null };
  await subject.request(name, async (/** @type {{ token?: bigint } | undefined} */ lock) => {
    turn.enteredUs = nowUs();
    if (lock?.token !== undefined) turn.token = String(lock.token);
    await work();
    turn.leftUs = nowUs();
  });
  return turn;
}

function nowUs() {
  return Number(process.hrtime.bigint() / 1000n);
}

/** @param {unknown} value @returns {value is { request: (name: string, run: (lock?: { token?: bigint }) => Promise<void>) => Promise<unknown> }} */
function isLock(value) {
  return (
    typeof value === "object" && value !== null && "request" in value && typeof value.request === "function"
  );
}

function say(/** @type {Report} */ report) {
  process.send?.(report);
}

process.on("message", (/** @type {Order} */ order) => {
  const before = process.cpuUsage();
  obey(order).then(
    (turns) => {
      const { user, system } = process.cpuUsage(before);
      say({ word: `done:${order.do}`, turns, cpuUs: user + system });
    },
    (error) => say({ word: "failed", turns: [], cpuUs: 0, error: String(error?.stack ?? error) }),
  );
});
// A measurement that was killed cannot end its fleet.
process.on("disconnect", () => process.exit());
say({ word: "ready", turns: [], cpuUs: 0 });
