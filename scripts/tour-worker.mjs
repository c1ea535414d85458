/** One worker of the tour, a process of its own: takes the lock as it is told and reports each step; the story is told in tour.mjs. */
import { setTimeout as pause } from "node:timers/promises";
import { connect, LockError } from "holdfast";
import { listen } from "./lib/live-log.mjs";

/** @typedef {"add" | "hold" | "overstay" | "leave"} Task */
/** @typedef {{ task: Task } | { reply: number | string }} Order a reply answers the worker's question to the ledger */

const [, , store = "", label = "", ttlMs = "", workMs = ""] = process.argv;
const lockName = "ledger";

listen("grant", ({ token, waitedMs }) => tell({ step: "granted", token: String(token), waitedMs }));
listen("release", ({ outcome, heldMs }) => tell({ step: "released", outcome, heldMs }));
listen("lost", ({ why, heldMs }) => tell({ step: "lost", why, heldMs }));

const locks = await connect(store, { label, ttl: Number(ttlMs) });

/** @type {(answer: number | string) => void} */
let onReply = () => {};

/** @type {Record<Task, () => Promise<void>>} */
const tasks = {
  /** Reads, takes its time, writes: without the lock, updates would get lost. */
  add: () =>
    locks.request(lockName, async (lock) => {
      const sum = Number(await ask({ step: "read" }));
      await pause(Number(workMs));
      await ask({ step: "write", token: String(lock.token), sum: sum + 1 });
    }),

  /** Holds until it is killed. */
  hold: () =>
    locks.request(lockName, async () => {
      tell({ step: "holding" });
      await new Promise(() => {});
    }),

  /** Reads, is frozen past its ttl, wakes up and writes, although it should have asked whether it still holds. */
  async overstay() {
    try {
      await locks.request(lockName, async (lock) => {
        const sum = Number(await ask({ step: "read" }));
        await ask({ step: "holding" });
        tell({ step: "awake", held: lock.held });
        await ask({ step: "write", token: String(lock.token), sum: sum + 1 });
      });
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      tell({ step: "told", code: error.code });
    }
  },

  leave: () => locks.close(),
};

/** @param {object} question */
function ask(question) {
  /** @type {Promise<number | string>} */
  const answer = new Promise((resolve) => {
    onReply = resolve;
  });
  tell(question);
  return answer;
}

/** @param {object} report */
function tell(report) {
  process.send?.(report);
}

/** @param {Order} order */
async function obey(order) {
  if ("reply" in order) return onReply(order.reply);
  await tasks[order.task]();
  tell({ step: "done" });
  if (order.task === "leave") process.disconnect();
}

process.on("message", (/** @type {Order} */ order) => void obey(order));
tell({ step: "ready" });
