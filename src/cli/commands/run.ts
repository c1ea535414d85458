/** `holdfast run`: takes a lock, runs a command while it is held, gives it back, and ends as the command did. */
import { constants } from "node:os";
import { basename } from "node:path";
import type { Backend } from "../../core/backend.ts";
import { showMs } from "../../core/duration.ts";
import { LockError } from "../../core/errors.ts";
import type { Lock } from "../../core/lock.ts";
import { LockManager } from "../../core/manager.ts";
import type { Call, Command, Outcome } from "../command.ts";
import { exitCodes, signalBase } from "../exit-codes.ts";
import { human } from "../human.ts";
import { Failure } from "../messages.ts";
import { holderOf, viewQueue } from "../picture.ts";
import type { Ended } from "../run/group.ts";
import { type Finished, quote, Relay, runHeld } from "../run/held.ts";
import { isEnding, listen } from "../run/signals.ts";
import { type RunWish, runWish } from "../run/wish.ts";
import { explained, openShared, reasonOf, storeOf, within } from "../store.ts";

/** How long the store may take to answer a release before people are told; the ttl frees the lock in any case. */
const releaseMs = 5_000;
/** The same for a command that was ended because the store does not answer. */
const lostReleaseMs = 500;
/** How long giving up a place in the queue may take. */
const closeMs = 2_000;
/** How long a line about the grant may take to be written before the command starts without it. */
const eventMs = 100;
/** How long somebody at a terminal waits before being told for whom. */
const patienceMs = 1_000;

/** Signals after which we die by the same signal, as others expect of a program that was told to end. */
const reraised: readonly string[] = ["SIGINT", "SIGTERM", "SIGHUP"];

export const run: Command = {
  name: "run",
  summary: "Run a command while holding a lock",
  usage: "<name> [options] -- <command> [arguments]",
  takes: { names: ["the name of the lock"], least: 1 },
  runsCommand: true,
  about: [
    "The command gets HOLDFAST_NAME and HOLDFAST_TOKEN, and stdin, stdout and stderr as they are. It runs in a process group of its own; signals are forwarded to the group, and the lock is held until all of the group has ended.",
    "If the lock cannot be renewed, the group gets SIGTERM and then SIGKILL before anybody else can be granted the lock.",
    "Exit code: that of the command; 75 if the lock is busy, 76 if it was lost, 69 if the store does not do its work, 126 or 127 if the command cannot be run.",
  ],
  options: {
    wait: { value: "TIME", help: "how long to wait for the lock; for ever if not given" },
    "if-available": { help: "do not wait at all" },
    ttl: { value: "TIME", help: "how long the lock lives without a renewal; 30s if not given" },
    shared: { help: "share the lock with other holders that say so" },
    "max-hold": { value: "TIME", help: "end the command when it has held the lock for so long" },
    "kill-grace": {
      value: "TIME",
      help: "time between SIGTERM and SIGKILL when the lock is about to be lost; a fifth of the ttl, 10s at most, if not given",
    },
    metadata: { value: "TEXT", help: "a small text for people, shown by ls" },
  },
  examples: [
    ["holdfast run nightly-report -- ./report.sh", "wait for the lock, then run the report"],
    ["holdfast run deploy --if-available -- make deploy", "deploy, or end with 75 if somebody else does"],
    [
      "holdfast run cache --shared --wait 10s -- ./read.sh",
      "together with other readers, after 10 s at most",
    ],
    [
      `holdfast run job --max-hold 1h -- sh -c 'curl -H "If-Token: $HOLDFAST_TOKEN" …'`,
      "hand the token to the resource",
    ],
  ],

  async run(call) {
    if (process.platform === "win32") {
      const reason = "holdfast run needs the process groups of Linux or macOS";
      throw new Failure("value-refused", { reason, command: "run" });
    }
    const wish = await explained(call, async () => runWish(call));
    const interrupted = new AbortController();
    const relay = new Relay((signal) => {
      if (isEnding(signal)) interrupted.abort(signal);
    });
    const unlisten = listen(relay);
    try {
      return await explained(call, () =>
        runOn(call, wish, { relay, unlisten, interrupted: interrupted.signal }),
      );
    } catch (error) {
      if (interrupted.signal.aborted) return asShellsDo({ signal: signalOf(interrupted.signal) });
      throw error;
    } finally {
      unlisten();
    }
  },
};

/** How signals reach a call. */
interface Signals {
  readonly relay: Relay;
  /** Gives signals their usual effect again. */
  readonly unlisten: () => void;
  /** Aborts when a signal ends the wait, with its name as the reason. */
  readonly interrupted: AbortSignal;
}

async function runOn(call: Call, wish: RunWish, signals: Signals): Promise<Outcome> {
  const backend = await unless(signals.interrupted, openShared(call));
  const manager = new LockManager(backend, { label: basename(call.rest[0] ?? "") });
  let closeWithinMs = closeMs;
  try {
    const lock = await take(manager, backend, call, wish, signals.interrupted);
    call.output.event({ event: "granted", name: lock.name, token: lock.toJSON().token });
    // Before anything that the command writes, unless nobody reads.
    await within(eventMs, call.output.written());
    // Closing gives it back.
    signals.interrupted.throwIfAborted();
    return await runWith(lock, call, wish, signals);
  } catch (error) {
    if (error instanceof Failure && error.shown.exitCode === exitCodes.lost) closeWithinMs = lostReleaseMs;
    throw error;
  } finally {
    await within(closeWithinMs, manager.close());
  }
}

/** Takes the lock. Rejects with the Failure that says why not, or with whatever a signal brought about. */
async function take(
  manager: LockManager,
  backend: Backend,
  call: Call,
  wish: RunWish,
  interrupted: AbortSignal,
): Promise<Lock> {
  const { name, mode, ttlMs: ttl, maxHoldMs: maxHold, metadata, waitMs } = wish;
  const options = { mode, ttl, maxHold, metadata };
  const impatient = setTimeout(() => {
    // It is a courtesy: whoever waits is told by the wait itself if the store is in trouble.
    tellWhom(backend, call, name).catch(() => {});
  }, patienceMs);
  try {
    if (waitMs !== null)
      return await manager.acquire(name, { ...options, wait: waitMs, signal: interrupted });
    const lock = await unless(interrupted, manager.tryAcquire(name, options));
    if (lock !== null) return lock;
    throw new Failure("busy", { reason: `lock ${quote(name)} on ${storeOf(call)} is not available`, name });
  } finally {
    clearTimeout(impatient);
  }
}

/** Whoever waits at a terminal wants to know for whom. */
async function tellWhom(backend: Backend, call: Call, name: string): Promise<void> {
  if (call.output.stderr.isTTY !== true || call.output.json) return;
  const { held, waiting } = await viewQueue(backend, name);
  const holders = held.map((entry) => `${holderOf(entry)} has held it for ${human(entry.ageMs)}`);
  const ahead = waiting.filter(({ owner }) => owner.pid !== process.pid).length;
  const others = ahead === 0 ? [] : [`${ahead} more wait`];
  call.output.note("waiting", { name: quote(name), holders: [...holders, ...others].join(", ") });
}

/** The result of the work, unless the signal comes first. */
function unless<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}

async function runWith(lock: Lock, call: Call, wish: RunWish, signals: Signals): Promise<Outcome> {
  const { signal } = lock;
  const { env, output, rest } = call;
  let finished: Finished;
  try {
    finished = await runHeld(lock, wish, rest, { env, output, relay: signals.relay });
  } catch (error) {
    await give(lock, call, wish, releaseMs);
    throw error;
  }
  // Nobody is left to get them: from here on they end a release that takes too long.
  signals.unlisten();
  // What a look at the clock says now counts, before the release makes it past.
  const heldToTheEnd = lock.held;
  const outcome = asShellsDo(finished.ended);
  const released = await give(lock, call, wish, finished.guardSent === null ? releaseMs : lostReleaseMs);
  output.event({
    event: "ended",
    name: lock.name,
    token: lock.toJSON().token,
    ended: finished.ended,
    released,
  });
  throwIfLost(finished, wish, call, heldToTheEnd && released !== "gone" ? null : lossReason(signal));
  return outcome;
}

/** Throws if the command was ended by us, or if it may have run without the lock: then `loss` says why. */
function throwIfLost(finished: Finished, wish: RunWish, call: Call, loss: string | null): void {
  const { guardSent: how, heldTooLong } = finished;
  const name = `lock ${quote(wish.name)}`;
  if (how === null) {
    if (loss !== null) throw new Failure("lost-late", { name, reason: loss });
  } else if (heldTooLong) {
    throw new Failure("held-too-long", { name, maxHold: showMs(wish.maxHoldMs ?? 0), how });
  } else if (loss === null) {
    throw new Failure("ended-in-time", { name, how, store: storeOf(call) });
  } else {
    throw new Failure("lost", { name, how, reason: loss });
  }
}

/** Why it was lost; one that is gone without a word was still believed to be there when the command had ended. */
function lossReason(signal: AbortSignal): string {
  const { reason } = signal;
  if (reason instanceof LockError) return reasonOf(reason);
  return "the store did not have it any more when the command had ended";
}

/** What became of a release. */
type Fate = "released" | "gone" | "unanswered";

/** Gives the lock back and says what became of it; a store that does not answer is not waited for. */
async function give(lock: Lock, call: Call, wish: RunWish, patience: number): Promise<Fate> {
  let fate: Fate = "unanswered";
  const release = lock.release().then((answer) => {
    fate = answer;
  });
  await within(Math.min(wish.ttlMs, patience), release);
  if (fate === "unanswered") {
    const values = { store: storeOf(call), name: quote(wish.name), ttl: showMs(wish.ttlMs) };
    call.output.note("release-unanswered", values);
  }
  return fate;
}

/** Dies by the signals that ask a program to end, as the command did; other signals become 128 + n, as in a shell. */
function asShellsDo(ended: Ended): Outcome {
  if ("code" in ended) return ended.code;
  if (reraised.includes(ended.signal)) return ended.signal;
  return signalBase + constants.signals[ended.signal];
}

function signalOf(signal: AbortSignal): NodeJS.Signals {
  const reason: unknown = signal.reason;
  return reason === "SIGTERM" || reason === "SIGHUP" || reason === "SIGQUIT" ? reason : "SIGINT";
}
