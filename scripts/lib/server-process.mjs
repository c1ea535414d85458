/** A throwaway server in a process of its own, on loopback, for tests and benches: started, broken and removed; what it serves is left to its maker. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @typedef {object} Recipe
 * @property {string} name for messages and the folder
 * @property {string} command
 * @property {readonly string[]} args
 * @property {string} folder where it may write; see makeFolder
 * @property {NodeJS.ProcessEnv} [env]
 * @property {number} [uid]
 * @property {number} [gid]
 * @property {() => Promise<unknown>} ready rejects until the server serves
 * @property {number} [readyMs] how long that may take
 */

/** A folder of its own for a server. */
export async function makeFolder(/** @type {string} */ name) {
  return mkdtemp(join(tmpdir(), `holdfast-${name}-`));
}

/** Removes the folder of a server that has ended. */
export async function removeFolder(/** @type {string} */ folder) {
  await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** So many ports of the loopback address that are free now. */
export async function freePorts(/** @type {number} */ count) {
  const holders = await Promise.all(Array.from({ length: count }, () => listen()));
  const ports = holders.map(({ port }) => port);
  await Promise.all(holders.map(({ close }) => close()));
  return ports;
}

/** @returns {Promise<{ port: number, close: () => Promise<void> }>} */
function listen() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") return reject(new Error("no port was given"));
      resolve({ port: address.port, close: () => new Promise((done) => server.close(() => done())) });
    });
  });
}

/** Starts a server and waits until it serves. Its output goes to the error if it does not come up. */
export async function startServer(/** @type {Recipe} */ recipe) {
  const server = new ServerProcess(recipe);
  await server.start();
  return server;
}

/** A server that can be paused, killed and started again with what it has kept in its folder. */
export class ServerProcess {
  /** @type {Recipe} */
  #recipe;
  /** @type {import("node:child_process").ChildProcess | null} */
  #child = null;
  #output = "";

  constructor(/** @type {Recipe} */ recipe) {
    this.#recipe = recipe;
    // A test run that is cut short leaves no server behind.
    process.on("exit", this.#atExit);
  }

  #atExit = () => {
    this.#child?.kill("SIGKILL");
  };

  get folder() {
    return this.#recipe.folder;
  }

  get pid() {
    return this.#child?.pid;
  }

  /** What it has printed. */
  get output() {
    return this.#output;
  }

  async start() {
    const { name, command, args, env, uid, gid, folder, ready, readyMs = 30_000 } = this.#recipe;
    if (this.#child !== null) throw new Error(`${name} is running`);
    const child = spawn(command, args, {
      cwd: folder,
      env: env ?? process.env,
      stdio: ["ignore", "pipe", "pipe"],
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
    });
    this.#child = child;
    const keep = (/** @type {Buffer} */ chunk) => {
      this.#output = (this.#output + chunk.toString()).slice(-20_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    /** @type {unknown} */
    let failure = null;
    child.on("error", (error) => {
      failure = error;
    });
    child.on("exit", () => {
      if (this.#child === child) this.#child = null;
    });
    const until = performance.now() + readyMs;
    for (;;) {
      try {
        await ready();
        return;
      } catch (error) {
        if (this.#child === null) failure ??= "it ended";
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

  /** It stands still, with its connections open, until `resume`. */
  pause() {
    this.#child?.kill("SIGSTOP");
  }

  resume() {
    this.#child?.kill("SIGCONT");
  }

  /** Ends it at once, as a power cut of its process would. */
  kill() {
    return this.#end("SIGKILL");
  }

  /** Lets it end in its own way. */
  async stop(/** @type {NodeJS.Signals} */ signal = "SIGTERM") {
    this.resume();
    const late = setTimeout(() => this.#child?.kill("SIGKILL"), 10_000);
    await this.#end(signal);
    clearTimeout(late);
  }

  /** Ends it and removes its folder. */
  async remove() {
    await this.kill();
    process.off("exit", this.#atExit);
    await removeFolder(this.#recipe.folder);
  }

  /** @returns {Promise<void>} */
  #end(/** @type {NodeJS.Signals} */ signal) {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      child.once("exit", () => resolve());
      child.kill(signal);
    });
  }

  /** Processor time that it has used so far, in milliseconds. Linux only. */
  async cpuMs() {
    const stat = await readFile(`/proc/${this.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // utime and stime, in ticks of a hundredth of a second.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }
}
