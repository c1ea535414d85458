/** The program `holdfast` in real processes, on a SQLite file of its own, as the build in dist has it. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../house/repository.ts";

const main = join(root, "dist", "cli", "main.js");

/** How a program ended and all that it wrote. */
export interface CliEnded {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs: what it writes can be waited for. */
export class Running {
  readonly ended: Promise<CliEnded>;
  /** Resolves when nobody is left who could write to its streams: it, and all that it started. */
  readonly deserted: Promise<void>;
  readonly #child: ChildProcess;
  #stdout = "";
  #stderr = "";
  #over = false;
  #onText: Array<() => void> = [];

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      this.#look();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
      this.#look();
    });
    // A pipe to a program that has ended is nobody's business here.
    child.stdin?.on("error", () => {});
    this.deserted = new Promise((resolve) => child.on("close", () => resolve()));
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        // What is left running may keep the pipes open: all that the program itself wrote has arrived a turn later.
        setImmediate(() => {
          this.#over = true;
          this.#look();
          resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
        });
      });
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("it was not started");
    return this.#child.pid;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The match of the first text on either stream that fits; rejects with all that was written if the program ends first. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(this.#stdout) ?? pattern.exec(this.#stderr);
        if (found !== null) resolve(found);
        else if (this.#over)
          reject(new Error(`it ended without ${pattern}:\n${this.#stdout}\n${this.#stderr}`));
        else this.#onText.push(look);
      };
      look();
    });
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Closes its stdin. */
  finish(): Promise<CliEnded> {
    this.#child.stdin?.end();
    return this.ended;
  }

  #look(): void {
    for (const look of this.#onText.splice(0)) look();
  }
}

/** A place where tests of the CLI happen: a folder, a store in it, and the programs that were started. */
export class CliRig {
  readonly folder: string = mkdtempSync(join(tmpdir(), "holdfast-cli-"));
  readonly file: string = join(this.folder, "locks.db");
  readonly store: string = `sqlite:${this.file}`;
  readonly #running: Running[] = [];
  readonly #env: NodeJS.ProcessEnv;

  /** @param env what every program gets, for example another store */
  constructor(env: NodeJS.ProcessEnv = {}) {
    this.#env = env;
  }

  /** Starts holdfast with these words. */
  start(words: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    return this.spawn(process.execPath, [main, ...words], env);
  }

  /** Runs holdfast to its end, without input. */
  run(words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<CliEnded> {
    return this.start(words, env).finish();
  }

  /** Starts holdfast on a terminal of its own; what is typed goes to it, and what it shows comes back on stdout. */
  onTerminal(words: readonly string[], size = "rows 24 columns 100"): Running {
    return this.#terminal(`stty ${size}; exec ${this.line(words)}`);
  }

  /** Starts a shell with job control on a terminal of its own. */
  onShell(): Running {
    return this.#terminal("PS1='$ ' exec bash --norc --noprofile -i");
  }

  /** The line by which a shell starts holdfast with these words. */
  line(words: readonly string[]): string {
    return [process.execPath, main, ...words].map(quoted).join(" ");
  }

  /** Resolves when a change is seen in the store whose line fits. */
  async watchFor(change: RegExp): Promise<void> {
    const watch = this.start(["watch", "--every", "50ms"]);
    await watch.until(change);
    watch.signal("SIGTERM");
    await watch.ended;
  }

  #terminal(command: string): Running {
    return this.spawn("script", ["-qefc", command, "/dev/null"], { TERM: "xterm", SHELL: "/bin/sh" });
  }

  /** Starts any program in the folder. */
  spawn(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    const { NO_COLOR: _none, ...inherited } = process.env;
    const all = { ...inherited, HOLDFAST_STORE: this.store, ...this.#env, ...env };
    const running = new Running(spawn(command, args, { cwd: this.folder, env: all, stdio: "pipe" }));
    this.#running.push(running);
    return running;
  }

  /** Starts a holder of a lock that runs until its stdin is closed. */
  async holder(name: string, options: readonly string[] = []): Promise<Running> {
    const running = this.start([
      "run",
      name,
      ...options,
      "--",
      "sh",
      "-c",
      "echo held $HOLDFAST_TOKEN; exec cat",
    ]);
    await running.until(/held \d+/);
    return running;
  }

  /**
   * Starts a process that keeps a write transaction open on the store, so that nobody else can write until its stdin is
   * closed.
   */
  async hog(): Promise<Running> {
    const driver = pathToFileURL(join(root, "dist", "backends", "sqlite", "driver.js")).href;
    const script = this.script(
      "hog.mjs",
      `import { findDriver } from ${JSON.stringify(driver)};
const db = findDriver().open(${JSON.stringify(this.file)});
for (;;) {
  try { db.exec("BEGIN IMMEDIATE"); break; } catch {}
}
console.log("hogging");
process.stdin.on("end", () => { db.exec("ROLLBACK"); db.close(); }).resume();`,
    );
    const running = this.spawn(process.execPath, [script]);
    await running.until(/hogging/);
    return running;
  }

  /** Writes a script into the folder; gives its path. */
  script(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  /** Ends what still runs, and removes the folder. */
  async end(): Promise<void> {
    for (const running of this.#running) {
      try {
        running.signal("SIGKILL");
      } catch {
        // It has ended.
      }
    }
    await Promise.all(this.#running.map(({ ended }) => ended));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
