/** Curator in Java processes for the bench: compiled, started and told what to do; figures come from what they print. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { compileCurator, curatorArguments } from "../scripts/lib/curator.mjs";
import { summarize } from "./statistics.mjs";

/** @import { Budget } from "./types.ts" */

/** Compiles the program into a folder. */
export function compileBench(/** @type {string} */ folder) {
  return compileCurator(new URL("java/CuratorBench.java", import.meta.url), folder);
}

/** One Java process. */
class Java {
  /** @type {string[]} */
  #heard = [];
  #onNews = () => {};

  /** @param {string} folder @param {string} hosts */
  constructor(folder, hosts) {
    const args = [...curatorArguments(folder, "CuratorBench"), hosts];
    this.child = spawn("java", args, { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      this.#heard.push(line);
      this.#onNews();
    });
  }

  async hear() {
    while (this.#heard.length === 0) {
      await new Promise((resolve) => {
        this.#onNews = () => resolve(undefined);
      });
    }
    return this.#heard.shift() ?? "";
  }

  ask(/** @type {string} */ order) {
    this.child.stdin.write(`${order}\n`);
    return this.hear();
  }
}

/**
 * @template T
 * @param {string} folder
 * @param {string} hosts
 * @param {number} processes
 * @param {(all: readonly Java[]) => Promise<T>} work
 */
async function withJava(folder, hosts, processes, work) {
  const all = Array.from({ length: processes }, () => new Java(folder, hosts));
  try {
    await Promise.all(all.map((java) => java.hear()));
    return await work(all);
  } finally {
    for (const { child } of all) child.kill("SIGKILL");
  }
}

/**
 * Microseconds of a pair, the median.
 * @param {string} folder
 * @param {string} hosts
 * @param {Budget} budget
 */
export async function curatorPair(folder, hosts, { warmUpMs, measureMs }) {
  return withJava(folder, hosts, 1, async ([java]) => {
    await java?.ask(`pair /curator/pair ${warmUpMs}`);
    const said = (await java?.ask(`pair /curator/pair ${measureMs}`)) ?? "";
    return summarize(said.split(" ").map(Number)).median;
  });
}

/**
 * Several waiters that take one lock again and again.
 * @param {string} folder
 * @param {string} hosts
 * @param {{ processes: number, waiters: number, holdMs: number } & Budget} shape
 * @param {(measure: () => Promise<number>) => Promise<void>} [around] called around what is measured; gives the number of turns
 */
export async function curatorLoop(folder, hosts, shape, around) {
  const { processes, waiters, holdMs, warmUpMs, measureMs } = shape;
  return withJava(folder, hosts, processes, async (all) => {
    const loop = (/** @type {string} */ path, /** @type {number} */ ms) =>
      Promise.all(all.map((java) => java.ask(`loop ${path} ${waiters} ${holdMs} ${ms}`)));
    await loop("/curator/warm", warmUpMs);
    /** @type {{ enteredUs: number, leftUs: number }[]} */
    let turns = [];
    const measure = async () => {
      const said = await loop("/curator/loop", measureMs);
      turns = said
        .flatMap((line) => line.split(" "))
        .map((turn) => turn.split(",").map(Number))
        .map(([enteredUs = 0, leftUs = 0]) => ({ enteredUs, leftUs }))
        .toSorted((a, b) => a.enteredUs - b.enteredUs);
      return turns.length;
    };
    if (around === undefined) await measure();
    else await around(measure);
    const gaps = turns.slice(1).map(({ enteredUs }, index) => enteredUs - (turns[index]?.leftUs ?? 0));
    if (gaps.some((gap) => gap < 0)) throw new Error("two held Curator's lock at once");
    return { perSecond: (turns.length / measureMs) * 1000, gapUs: summarize(gaps).median };
  });
}
