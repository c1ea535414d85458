/**
 * Several processes with several waiters each that want one lock: drains, loops, gaps and inversions. What takes the lock
 * is left to the contender, what one process does to fleet-worker.mjs.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { summarize } from "./statistics.mjs";

/** @import { Job } from "./types.ts" */
/** @import { Order, Report, Turn } from "./fleet-worker.mjs" */

/** @typedef {{ processes: number, waiters: number, holdMs: number }} Shape processes, and waiters in each */

/**
 * Asks that are further apart than this arrive in their order, in microseconds; of closer ones nobody can say which was
 * the first.
 */
const tellApartUs = 1_000;

/** @typedef {{ warmUpMs: number, measureMs: number }} LoopShape */

/**
 * All waiters ask once, one after the other, behind a holder that leaves when all stand in line.
 * @param {Job} job
 * @param {Shape & { drains: number }} shape
 */
export async function drainFleet(job, shape) {
  return withFleet(job, shape.processes, (fleet) => drain(fleet, shape));
}

/**
 * Each waiter takes the lock again and again.
 * @param {Job} job
 * @param {Shape & LoopShape} shape
 */
export async function loopFleet(job, shape) {
  return withFleet(job, shape.processes, (fleet) => loop(fleet, shape));
}

/**
 * First the one, then the other, in the same processes: the drains find code that is compiled.
 * @param {Job} job
 * @param {Shape & LoopShape & { drains: number, between?: () => Promise<void> }} shape between: called after the loop
 */
export async function loopThenDrainFleet(job, shape) {
  return withFleet(job, shape.processes, async (fleet) => {
    const looped = await loop(fleet, shape);
    await shape.between?.();
    return { looped, drained: await drain(fleet, shape) };
  });
}

/** @param {Fleet} fleet @param {Shape & { drains: number }} shape */
async function drain(fleet, { waiters, holdMs, drains }) {
  const gaps = [];
  const drainsMs = [];
  let inversions = 0;
  for (let count = 0; count < drains; count++) {
    const turns = await drainOnce(fleet, `drain:${count}`, { waiters, holdMs });
    const inOrder = inOrderOfEntry(turns);
    gaps.push(...gapsOf(inOrder));
    inversions += inversionsIn(inOrder);
    drainsMs.push(((inOrder.at(-1)?.leftUs ?? 0) - (inOrder[0]?.leftUs ?? 0)) / 1000);
  }
  return { drainMs: summarize(drainsMs).median, gapUs: summarize(gaps).median, inversions };
}

/** @param {Fleet} fleet @param {Shape & LoopShape} shape */
async function loop(fleet, { waiters, holdMs, warmUpMs, measureMs }) {
  await fleet.all({ do: "loop", name: "warm", waiters, holdMs, ms: warmUpMs });
  const reports = await fleet.all({ do: "loop", name: "loop", waiters, holdMs, ms: measureMs });
  const inOrder = inOrderOfEntry(reports.flatMap(({ turns }) => turns));
  const gaps = gapsOf(inOrder);
  const toOthers = inOrder.filter((turn, index) => turn.waiter !== inOrder[index - 1]?.waiter).length;
  return {
    perSecond: (inOrder.length / measureMs) * 1000,
    toOthersPerSecond: (toOthers / measureMs) * 1000,
    gapUs: summarize(gaps).median,
    inversions: inversionsIn(inOrder),
    acquisitions: inOrder.length,
    cpuUsPerAcquire: reports.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / inOrder.length,
  };
}

/**
 * @param {Fleet} fleet
 * @param {string} name
 * @param {{ waiters: number, holdMs: number }} shape
 * @returns {Promise<readonly Turn[]>} the holder's among them
 */
async function drainOnce(fleet, name, { waiters, holdMs }) {
  const holder = fleet.one(0, { do: "hold", name });
  await fleet.told(0, "holding");
  const asks = fleet.workers.map((_, process) =>
    fleet.one(process, {
      do: "ask",
      name,
      waiters,
      holdMs,
      // In turn: the first waiter of each process, then the second of each…
      everyMs: 2 * fleet.workers.length,
      afterMs: 2 * process,
    }),
  );
  await Promise.all(fleet.workers.map((_, process) => fleet.told(process, "asked")));
  fleet.tell(0, { do: "leave" });
  const reports = await Promise.all([holder, ...asks]);
  return reports.flatMap(({ turns }) => turns);
}

/**
 * @template T
 * @param {Job} job
 * @param {number} processes
 * @param {(fleet: Fleet) => Promise<T>} measure
 * @returns {Promise<T>}
 */
async function withFleet(job, processes, measure) {
  const fleet = new Fleet(job, processes);
  try {
    await Promise.all(fleet.workers.map((_, process) => fleet.told(process, "ready")));
    return await measure(fleet);
  } finally {
    fleet.end();
  }
}

/** The processes. */
class Fleet {
  /** @param {Job} job @param {number} processes */
  constructor(job, processes) {
    this.workers = Array.from({ length: processes }, (_, index) => new Worker(job, index));
  }

  /** Gives an order to all and waits for their reports. */
  all(/** @type {Order} */ order) {
    return Promise.all(this.workers.map((_, process) => this.one(process, order)));
  }

  /** Gives an order to one and waits for its report. @param {number} process @param {Order} order */
  one(process, order) {
    this.tell(process, order);
    return this.told(process, `done:${order.do}`);
  }

  /** @param {number} process @param {Order} order */
  tell(process, order) {
    this.#worker(process).child.send(order);
  }

  /** Waits for a word of a process. @param {number} process @param {string} word */
  told(process, word) {
    return this.#worker(process).told(word);
  }

  end() {
    for (const { child } of this.workers) child.kill("SIGKILL");
  }

  #worker(/** @type {number} */ process) {
    const worker = this.workers[process];
    if (worker === undefined) throw new Error(`there is no process ${process}`);
    return worker;
  }
}

/** One process, and what it has said. */
class Worker {
  /** @type {Report[]} */
  #heard = [];
  /** @type {Error | null} */
  #failure = null;
  #onNews = () => {};

  /** @param {Job} job @param {number} index */
  constructor(job, index) {
    const script = fileURLToPath(new URL("./fleet-worker.mjs", import.meta.url));
    this.child = fork(script, [JSON.stringify(job), String(index)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.child.on("message", (/** @type {Report} */ report) => {
      if (report.word === "failed") this.#failure = new Error(report.error);
      else this.#heard.push(report);
      this.#onNews();
    });
    this.child.on("exit", (code, signal) => {
      this.#failure ??= new Error(`process ${index} of the fleet ended early (${code ?? signal})`);
      this.#onNews();
    });
  }

  /** @param {string} word @returns {Promise<Report>} */
  async told(word) {
    for (;;) {
      const at = this.#heard.findIndex((report) => report.word === word);
      const [report] = at < 0 ? [] : this.#heard.splice(at, 1);
      if (report !== undefined) return report;
      if (this.#failure !== null) throw this.#failure;
      const before = this.#onNews;
      await new Promise((resolve) => {
        // Two may wait for different words of one process.
        this.#onNews = () => {
          before();
          resolve(undefined);
        };
      });
    }
  }
}

/** @param {readonly Turn[]} turns */
function inOrderOfEntry(turns) {
  const inOrder = turns.toSorted((a, b) => a.enteredUs - b.enteredUs);
  inOrder.forEach((turn, index) => {
    const before = inOrder[index - 1];
    if (before !== undefined && turn.enteredUs < before.leftUs) throw new Error("two held the lock at once");
  });
  return inOrder;
}

/** From the moment one begins to leave until the next is inside. @param {readonly Turn[]} inOrder */
function gapsOf(inOrder) {
  return inOrder.slice(1).map((turn, index) => turn.enteredUs - (inOrder[index]?.leftUs ?? 0));
}

/**
 * How often somebody entered while one who had asked before still waited: by the tokens where there are some, since they
 * are the order of the store; else by the clock, as far as it can tell.
 * @param {readonly Turn[]} inOrder
 */
function inversionsIn(inOrder) {
  const ordered = inOrder.every(({ token }) => token !== null);
  const placeOf = (/** @type {Turn} */ { token, askedUs }) =>
    ordered ? Number(token) : askedUs / tellApartUs;
  let earliestLater = Number.POSITIVE_INFINITY;
  let inversions = 0;
  for (const turn of inOrder.toReversed()) {
    if (earliestLater + (ordered ? 0 : 1) < placeOf(turn)) inversions += 1;
    earliestLater = Math.min(earliestLater, placeOf(turn));
  }
  return inversions;
}
