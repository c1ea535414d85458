/** A command in a process group and session of its own: started, signalled and watched as a whole. When to is left to others. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { Failure } from "../messages.ts";

/** How often a group that was told to stop is looked at, a millisecond apart, until we stop in any case. */
const stopTries = 500;
/** What a thread waits on that only wants to wait. */
const nothing = new Int32Array(new SharedArrayBuffer(4));

/** How the command itself ended. */
export type Ended = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** The processes that one command has become. */
export class ProcessGroup {
  /** Resolves when the command itself has ended; what it left behind may run on. */
  readonly ended: Promise<Ended>;
  readonly #leader: number;

  private constructor(child: ChildProcess, leader: number) {
    this.#leader = leader;
    this.ended = new Promise((resolve) => {
      child.on("exit", (code, signal) => resolve(signal === null ? { code: code ?? 1 } : { signal }));
    });
  }

  /** Starts a command that inherits stdin, stdout and stderr. Rejects as a shell would: not found, or not executable. */
  static start(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<ProcessGroup> {
    return new Promise((resolve, reject) => {
      // What shells say of it; spawn takes it for a mistake of the caller.
      if (command === "") return reject(new Failure("command-not-found", { command: '""' }));
      const child = spawn(command, args, { detached: true, stdio: "inherit", env });
      child.on("error", (error) => reject(startFailure(command, error)));
      // Its end is listened for before anything else can happen.
      if (child.pid !== undefined) resolve(new ProcessGroup(child, child.pid));
    });
  }

  /** Sends a signal to all of the group; nothing happens if nobody is left. */
  signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.#leader, name);
    } catch {
      // Nobody is left, or all run as somebody else: in both cases there is nothing more to be done from here.
    }
  }

  /**
   * Stops all of the group and waits a moment until it has: whoever has not yet noticed could still take what is typed
   * for somebody else.
   */
  stop(): void {
    this.signal("SIGSTOP");
    for (let tries = 0; tries < stopTries && this.#runs(); tries++) Atomics.wait(nothing, 0, 0, 1);
  }

  #runs(): boolean {
    if (process.platform !== "linux") return false;
    return liveMembers(this.#leader).some(({ state }) => state !== "T" && state !== "t");
  }

  /** The processes of the group that still do something; a dead one that nobody has buried does nothing. */
  members(): readonly number[] {
    if (!this.#exists()) return [];
    return process.platform === "linux" ? liveMembers(this.#leader).map(({ pid }) => pid) : [this.#leader];
  }

  #exists(): boolean {
    try {
      process.kill(-this.#leader, 0);
      return true;
    } catch (error) {
      return codeOf(error) !== "ESRCH";
    }
  }
}

function startFailure(command: string, error: Error): Failure {
  if (codeOf(error) === "ENOENT") return new Failure("command-not-found", { command });
  const reason = codeOf(error) === "EACCES" ? "permission denied" : error.message;
  return new Failure("command-not-executable", { command, reason });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/**
 * The members of a group that are not zombies: in a container nobody may bury those. Where there is no /proc the group
 * is believed to be there.
 */
function liveMembers(group: number): readonly { pid: number; state: string }[] {
  if (!existsSync("/proc/self/stat")) return [{ pid: group, state: "" }];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => ({ pid: Number(pid), ...statOf(pid) }))
    .filter(({ pgrp, state }) => pgrp === group && state !== "Z" && state !== "X");
}

/** The fields behind the name, which is in brackets and may contain anything. */
function statOf(pid: string): { state: string; pgrp: number } {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", , pgrp] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, pgrp: Number(pgrp) };
  } catch {
    return { state: "", pgrp: Number.NaN };
  }
}
