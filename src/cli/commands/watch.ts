/** `holdfast watch`: the listing as it changes; a table that is drawn again on a terminal, lines of changes elsewhere. */
import type { Backend, Browsable } from "../../core/backend.ts";
import { durationMs, showMs } from "../../core/duration.ts";
import { LockError } from "../../core/errors.ts";
import { type Change, Changes } from "../changes.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { cut, printable } from "../human.ts";
import { entryRecord, holderOf, modeOf, type QueueView, viewAll } from "../picture.ts";
import { ending } from "../run/signals.ts";
import { Screen } from "../screen.ts";
import { browsable, explained, reasonOf, storeOf, withStore } from "../store.ts";
import { listing } from "./ls.ts";

/** How long a store may take to answer before people are told. */
const answerMs = 3_000;
/** A timer of more than about 25 days would go off at once. */
const longestTimerMs = 2 ** 31 - 1;

export const watch: Command = {
  name: "watch",
  summary: "Watch who holds and who waits, as it changes",
  usage: "[prefix] [options]",
  takes: { names: ["a prefix"], least: 0 },
  about: [
    "On a terminal a table that is drawn again; elsewhere, and with --json, one line for each change: granted, waits, left. Looks again at an interval, so what is over sooner may not be seen. Ctrl-C ends it.",
  ],
  options: { every: { value: "TIME", help: "how often to look; 1s if not given" } },
  examples: [
    ["holdfast watch", "all locks"],
    ["holdfast watch order: --every 250ms", "some of them, more often"],
    ["holdfast watch --json >> changes.jsonl", "keep a record of the changes"],
  ],

  async run(call) {
    const every = call.given.value("every") ?? "1s";
    const everyMs = await explained(call, async () => durationMs(every, { option: "--every", leastMs: 50 }));
    const ended = new AbortController();
    const end = (): void => ended.abort();
    for (const signal of ending) process.on(signal, end);
    try {
      await withStore(call, async (backend) => {
        const view = viewerFor(call, everyMs);
        try {
          await follow(call, browsable(call, backend), view, everyMs, ended.signal);
        } finally {
          view.end();
        }
      });
    } finally {
      for (const signal of ending) process.off(signal, end);
    }
    return exitCodes.ok;
  },
};

/** What shows the looks. */
interface Viewer {
  show(views: readonly QueueView[]): void;
  /** The store does not answer, for this reason; null when it does again. */
  trouble(reason: string | null): void;
  end(): void;
}

/** Looks again and again. The first look has to succeed; after that a store that does not answer is waited for. */
async function follow(
  call: Call,
  backend: Backend & Browsable,
  viewer: Viewer,
  everyMs: number,
  ended: AbortSignal,
): Promise<void> {
  let silent = false;
  let first = true;
  while (!ended.aborted) {
    try {
      const views = await inTime(viewAll(backend, call.positionals[0] ?? ""), ended);
      if (views === null) return;
      if (silent) viewer.trouble(null);
      silent = false;
      first = false;
      viewer.show(views);
    } catch (error) {
      if (first || !(error instanceof LockError)) throw error;
      if (!silent) viewer.trouble(reasonOf(error));
      silent = true;
    }
    await pause(everyMs, ended);
  }
}

/** The answer, or null if the watch ended first; an answer that does not come is an error like others. */
function inTime<T>(answer: Promise<T>, ended: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const late = (): void =>
      reject(new LockError("LOCK_UNAVAILABLE", `no answer within ${showMs(answerMs)}`));
    const timer = setTimeout(late, answerMs);
    const giveUp = (): void => resolve(null);
    ended.addEventListener("abort", giveUp, { once: true });
    void answer.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      ended.removeEventListener("abort", giveUp);
    });
  });
}

function pause(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (ended.aborted) return resolve();
    const wake = (): void => {
      clearTimeout(timer);
      ended.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, Math.min(ms, longestTimerMs));
    ended.addEventListener("abort", wake);
  });
}

function viewerFor(call: Call, everyMs: number): Viewer {
  return call.output.stdout.isTTY === true && !call.output.json ? table(call, everyMs) : lines(call);
}

function table(call: Call, everyMs: number): Viewer {
  const { output } = call;
  const screen = new Screen(output.stdout);
  let last: readonly QueueView[] = [];
  let trouble: string | null = null;
  const draw = (): void => {
    const at = new Date().toTimeString().slice(0, 8);
    const head = `${storeOf(call)}, every ${showMs(everyMs)}, last seen ${at}; Ctrl-C ends`;
    const status =
      trouble === null ? [] : [output.paint("bad", cut(`does not answer: ${trouble}`, output.width))];
    screen.draw([output.paint("faint", cut(head, output.width)), ...status, "", ...listing(last, output)]);
  };
  process.on("SIGWINCH", draw);
  return {
    show(views) {
      last = views;
      draw();
    },
    trouble(reason) {
      trouble = reason === null ? null : printable(reason);
      draw();
    },
    end() {
      process.off("SIGWINCH", draw);
      screen.end();
    },
  };
}

function lines(call: Call): Viewer {
  const { output } = call;
  const changes = new Changes();
  return {
    show(views) {
      const at = new Date().toISOString();
      for (const change of changes.since(views)) {
        if (output.json)
          output.record({ at, change: change.what, ...entryRecord(change.view, change.entry) });
        else output.line(`${at} ${changeLine(change)}`);
      }
    },
    trouble(reason) {
      if (reason === null) output.note("store-back", { store: storeOf(call) });
      else output.note("store-silent", { store: storeOf(call), reason });
    },
    end() {},
  };
}

/** A change for people. */
export function changeLine({ what, view, entry }: Change): string {
  const parts = [what.padEnd(7), printable(view.name), modeOf(entry), holderOf(entry), `token ${entry.seq}`];
  return [...parts, printable(entry.metadata ?? "")].join("  ").trimEnd();
}
