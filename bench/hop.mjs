/** What one message between two processes over a local socket costs: the least that a pushed hand-over has to pay. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { summarize } from "./statistics.mjs";

/** @import { Budget } from "./types.ts" */

const messages = 200;

/**
 * Microseconds from the write in one process until the other has the message, the median of many; both processes sleep in
 * between, as waiters do. Work that is given is done, and timed, before each write, and prepared while nothing is timed.
 * @param {Budget} budget
 * @param {{ prepare: () => void, work: () => void }} [first]
 */
export async function hopMicros({ warmUpMs }, first) {
  const address = join(tmpdir(), `holdfast-hop-${process.pid}.sock`);
  const child = fork(fileURLToPath(import.meta.url), [address], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  try {
    await once(child, "message");
    const socket = connect(address).setNoDelay(true);
    await once(socket, "connect");
    const send = async (/** @type {number} */ count) => {
      for (let i = 0; i < count; i++) {
        first?.prepare();
        await pause(1);
        const startedAt = process.hrtime.bigint();
        first?.work();
        socket.write(`${startedAt}\n`);
      }
    };
    await send(Math.ceil(warmUpMs / 2));
    child.send("measure");
    await once(child, "message");
    await send(messages);
    await pause(1);
    child.send("report");
    const [hops] = await once(child, "message");
    socket.destroy();
    return summarize(hops).median;
  } finally {
    child.kill("SIGKILL");
    await rm(address, { force: true });
  }
}

/** The process at the other end. */
function answer(/** @type {string} */ address) {
  /** @type {number[]} */
  let hops = [];
  const server = createServer((socket) => {
    socket.setEncoding("utf8").on("data", (/** @type {string} */ text) => {
      const now = process.hrtime.bigint();
      for (const sentAt of text.trim().split("\n")) hops.push(Number(now - BigInt(sentAt)) / 1000);
    });
  });
  server.listen(address, () => process.send?.("ready"));
  process.on("message", (order) => {
    if (order === "report") process.send?.(hops);
    else {
      hops = [];
      process.send?.("measuring");
    }
  });
}

const [, script, address] = process.argv;
if (script === fileURLToPath(import.meta.url) && address !== undefined) answer(address);
