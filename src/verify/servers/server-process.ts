/** A throwaway server in a process of its own, on loopback: started, broken and removed; what it serves is left to its maker. */
import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { readFileSync, rmSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** What a server is made of. */
export interface Recipe {
  /** For messages. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Where it may write; see makeFolder. */
  readonly folder: string;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** Rejects until the server serves. */
  readonly ready: () => Promise<unknown>;
  /**
   * How long that may take.
   * @default 30_000
   */
  readonly readyMs?: number | undefined;
}

/** All folders that are there. */
const folders = new Set<string>();
const removal = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 };

/** A folder of its own for a server. */
export async function makeFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `holdfast-${name}-`));
  folders.add(folder);
  return folder;
}

/** Removes the folder of a server that has ended. */
export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, removal);
  folders.delete(folder);
}

/** Ports below those that systems give to outgoing connections: one of these could take a port before its server does. */
const lowestPort = 10_000;
const highestPort = 32_000;

/** So many ports of the loopback address that are free now, and that nobody else is given while this process runs. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Array<{ port: number; close: () => Promise<void> }> = [];
  while (held.length < count) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort));
    const letGo = await claim(port).catch(() => null);
    const close = letGo === null ? null : await listen(port).catch(() => null);
    if (close !== null) held.push({ port, close });
    else letGo?.();
  }
  await Promise.all(held.map(({ close }) => close()));
  return held.map(({ port }) => port);
}

/**
 * Makes a port ours, whether a server listens there just now or not: no server here uses UDP, so the port of that number is our word to
 * whoever looks for ports, and it ends with this process, however that ends. Gives the function that ends it before.
 */
function claim(port: number): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    socket.on("error", reject);
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => {
      socket.unref();
      resolve(() => socket.close());
    });
  });
}

/** Takes a port; gives the function that lets it go. */
function listen(port: number): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () => {
      resolve(() => new Promise((done) => server.close(() => done())));
    });
  });
}

/** Starts a server and waits until it serves. Its output goes to the error if it does not come up. */
export async function startServer(recipe: Recipe): Promise<ServerProcess> {
  const server = new ServerProcess(recipe);
  await server.start();
  return server;
}

/** All that run. */
const running = new Set<ChildProcess>();

/** Ends all servers at once and removes all folders: what is cut short, or fails half-way, leaves nothing behind. */
export function endAll(): void {
  for (const child of running) {
    const workers = workersOf(child);
    child.kill("SIGKILL");
    tell(workers, "SIGCONT");
  }
  for (const folder of folders) {
    try {
      rmSync(folder, removal);
      folders.delete(folder);
    } catch {
      // Whoever ends has no time for more.
    }
  }
}
process.on("exit", endAll);

/** Sees to it that a child does not outlive this process, however that ends but by SIGKILL. */
export function endWithUs(child: ChildProcess): void {
  running.add(child);
  child.once("exit", () => running.delete(child));
}

let apart = false;

/** From now on servers do not hear Ctrl-C at the terminal: whoever calls this does, and ends them in order. */
export function keepSignals(): void {
  apart = true;
}

/** A server that can be paused, killed and started again with what it has kept in its folder. */
export class ServerProcess {
  readonly #recipe: Recipe;
  #child: ChildProcess | null = null;
  #output = "";

  constructor(recipe: Recipe) {
    this.#recipe = recipe;
  }

  get folder(): string {
    return this.#recipe.folder;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** What it has printed. */
  get output(): string {
    return this.#output;
  }

  async start(): Promise<void> {
    const { name, ready, readyMs = 30_000 } = this.#recipe;
    if (this.#child !== null) throw new Error(`${name} is running`);
    const failed = this.#spawn();
    const until = performance.now() + readyMs;
    for (;;) {
      try {
        await ready();
        return;
      } catch (error) {
        const failure = failed() ?? (this.#child === null ? "it ended" : null);
        if (failure !== null || performance.now() > until) {
          await this.kill();
          throw new Error(`${name} did not start: ${String(failure ?? error)}\n${this.#output}`, {
            cause: error,
          });
        }
        await sleep(20);
      }
    }
  }

  /** Gives a function that says why it could not be run. */
  #spawn(): () => unknown {
    const { command, args, env, uid, gid, folder } = this.#recipe;
    const child = spawn(command, args, {
      cwd: folder,
      env: env ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: apart,
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
    });
    this.#child = child;
    endWithUs(child);
    const keep = (chunk: Buffer): void => {
      this.#output = (this.#output + chunk.toString()).slice(-20_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    let failure: unknown = null;
    child.on("error", (error) => {
      failure = error;
      // What was never started does not exit.
      if (child.pid === undefined && this.#child === child) this.#child = null;
    });
    child.on("exit", () => {
      if (this.#child === child) this.#child = null;
    });
    return () => failure;
  }

  /** It stands still, with its connections open, until `resume`: also the processes that it has started, which may serve them. */
  pause(): void {
    this.#tellAll("SIGSTOP");
  }

  resume(): void {
    this.#tellAll("SIGCONT");
  }

  #tellAll(signal: NodeJS.Signals): void {
    if (this.#child === null) return;
    // First the one that starts the others: whoever stands still starts none that would be missed.
    this.#child.kill(signal);
    tell(workersOf(this.#child), signal);
  }

  /** Ends it at once, as a power cut of its process would. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Lets it end in its own way. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.resume();
    const late = setTimeout(() => this.#child?.kill("SIGKILL"), 10_000);
    await this.#end(signal);
    clearTimeout(late);
  }

  /** Ends it and removes its folder. */
  async remove(): Promise<void> {
    await this.kill();
    await removeFolder(this.#recipe.folder);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const workers = workersOf(child);
    await new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
      child.kill(signal);
    });
    tell(workers, "SIGCONT");
    await haveEnded(workers);
  }

  /** Processor time that it has used so far, in milliseconds. Linux only. */
  async cpuMs(): Promise<number> {
    const stat = await readFile(`/proc/${this.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // utime and stime, in ticks of a hundredth of a second.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }
}

/** How long the processes of a server may outlive it, in milliseconds. */
const afterlifeMs = 10_000;

/** The processes that a server has started. Linux only: elsewhere none are known. */
function workersOf({ pid }: ChildProcess): readonly string[] {
  return (read(`/proc/${pid}/task/${pid}/children`) ?? "").split(" ").filter((worker) => worker !== "");
}

/** Sends a signal to each. Those who stand still have to go on before they can notice that their server has ended. */
function tell(workers: readonly string[], signal: NodeJS.Signals): void {
  for (const worker of workers) {
    try {
      process.kill(Number(worker), signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Waits until they have noticed that their server has ended, and ended: PostgreSQL does not start again before. */
async function haveEnded(workers: readonly string[]): Promise<void> {
  const until = performance.now() + afterlifeMs;
  while (workers.some(isAlive) && performance.now() < until) await sleep(5);
}

/** One that only waits to be reaped is not. */
function isAlive(pid: string): boolean {
  const stat = read(`/proc/${pid}/stat`);
  return stat !== null && !/\) [XZ] /.test(stat);
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
