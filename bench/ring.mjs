/**
 * What one message costs in the shape of a drain: several processes in a ring, each of which sleeps until its turn, waits
 * for a millisecond and passes the message on. The least that a hand-over among so many has to pay.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { loadSuite } from "./suites.mjs";
import { summarize } from "./statistics.mjs";

/** @import { Job } from "./types.ts" */
/**
 * What a contender does before each message, in what all processes share: each name is taken before the first message, and
 * freed, and timed, before one of them.
 * @typedef {{ take: (name: string) => void, free: (name: string) => void }} Rows
 */
/** @typedef {{ job: Job, folder: string, place: number, next: number }} Seat */

const messages = 400;

/**
 * Microseconds from before the work and the write in one process until the next has the message, the median of many.
 * @param {Job} job
 * @param {number} processes
 */
export async function ringMicros(job, processes) {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-ring-"));
  const seats = Array.from({ length: processes }, (_, place) => {
    const seat = JSON.stringify({ job, folder, place, next: (place + 1) % processes });
    return fork(fileURLToPath(import.meta.url), [seat], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  });
  try {
    await Promise.all(seats.map((seat) => once(seat, "message")));
    for (const seat of seats) await answer(seat, "link");
    seats[0]?.send("go");
    await Promise.race(seats.map((seat) => once(seat, "message")));
    const hops = [];
    for (const seat of seats) hops.push(...(await answer(seat, "report")));
    return summarize(hops).median;
  } finally {
    for (const seat of seats) seat.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {import("node:child_process").ChildProcess} seat @param {string} order */
async function answer(seat, order) {
  const answered = once(seat, "message");
  seat.send(order);
  const [said] = await answered;
  return said;
}

/** One process of the ring. It reads where it has connected, as the backend does: without a stream. */
async function sit(/** @type {Seat} */ { job, folder, place, next }) {
  const suite = await loadSuite(job.suite);
  const contender = suite.contenders.find(({ name }) => name === job.contender);
  const subject = await contender?.open(job.context);
  const rows = hasRows(subject) ? subject.openShared() : null;
  const address = (/** @type {number} */ at) => join(folder, `${at}.sock`);
  /** @type {import("node:net").Socket | null} */
  let out = null;
  /** @type {number[]} */
  const hops = [];
  const pass = async (/** @type {number} */ count) => {
    await pause(1);
    const sentAt = process.hrtime.bigint();
    rows?.free(`${place}.${count}`);
    out?.write(`${sentAt} ${count}\n`, "latin1");
  };
  const heard = (/** @type {string} */ text) => {
    const now = process.hrtime.bigint();
    const [sentAt = "0", count] = text.trim().split(" ");
    // A quarter of them is there to warm up.
    if (Number(count) > messages / 4) hops.push(Number(now - BigInt(sentAt)) / 1000);
    if (Number(count) < messages) void pass(Number(count) + 1);
    else process.send?.("over");
  };
  const link = () => {
    for (let count = 0; count <= messages; count++) rows?.take(`${place}.${count}`);
    const buffer = Buffer.alloc(4096);
    const callback = (/** @type {number} */ bytes) => {
      heard(buffer.toString("latin1", 0, bytes));
      return true;
    };
    connect({ path: address(next), onread: { buffer, callback } }).on("connect", () =>
      process.send?.("linked"),
    );
  };
  process.on("message", (order) => {
    if (order === "go") void pass(0);
    else if (order === "link") link();
    else process.send?.(hops);
  });
  createServer((socket) => {
    out = socket;
  }).listen(address(place), () => process.send?.("ready"));
}

/** @param {unknown} subject @returns {subject is { openShared: () => Rows }} */
function hasRows(subject) {
  return typeof subject === "object" && subject !== null && "openShared" in subject;
}

const [, script, seat] = process.argv;
// Not awaited: the suite imports this module, and would wait for itself.
if (script === fileURLToPath(import.meta.url) && seat !== undefined) void sit(JSON.parse(seat));
