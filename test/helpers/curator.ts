/** A Java process that uses Curator's locks, as a test talks to it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { javaFlags } from "../../scripts/lib/zookeeper-for-tests.mjs";

const jars = [
  "curator-recipes",
  "curator-framework",
  "curator-client",
  "zookeeper",
  "zookeeper-jute",
  "guava",
  "slf4j-api",
  "slf4j-simple",
].map((name) => `/usr/share/java/${name}.jar`);

/** Which of Curator's locks. */
export type CuratorKind = "mutex" | "read" | "write";

/** The program, compiled once for a test file. */
export class CuratorProgram {
  readonly #folder: string;
  readonly #peers: CuratorPeer[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async compile(): Promise<CuratorProgram> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-curator-"));
    const source = fileURLToPath(new URL("java/CuratorPeer.java", import.meta.url));
    await promisify(execFile)("javac", ["-d", folder, "-cp", jars.join(":"), source]);
    return new CuratorProgram(folder);
  }

  /** Starts a process with a lock at a path. */
  async start(hosts: string, sessionMs: number, path: string, kind: CuratorKind): Promise<CuratorPeer> {
    const args = [
      ...javaFlags,
      "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
      "-cp",
      [this.#folder, ...jars].join(":"),
    ];
    const child = spawn("java", [...args, "CuratorPeer", hosts, String(sessionMs), path, kind], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const peer = new CuratorPeer(child);
    this.#peers.push(peer);
    await peer.hear("ready");
    return peer;
  }

  /** Ends all processes and removes what was compiled. */
  async close(): Promise<void> {
    for (const peer of this.#peers) peer.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** One process. */
export class CuratorPeer {
  readonly #child: ChildProcess;
  readonly #heard: string[] = [];
  #onNews: () => void = () => {};
  #ended = false;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on("exit", () => {
      this.#ended = true;
      this.#onNews();
    });
    if (child.stdout === null) throw new Error("the process has no output");
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#heard.push(line);
      this.#onNews();
    });
  }

  /** Tells it what to do, without waiting. */
  tell(order: string): void {
    this.#child.stdin?.write(`${order}\n`);
  }

  /** Tells it what to do, and waits for its word. */
  async ask(order: string): Promise<string> {
    this.tell(order);
    return this.hear();
  }

  /** Its next word, which must be the given one, if one is given. */
  async hear(word?: string): Promise<string> {
    while (this.#heard.length === 0) {
      if (this.#ended) throw new Error("the Java process has ended");
      await new Promise<void>((resolve) => {
        this.#onNews = resolve;
      });
    }
    const heard = this.#heard.shift() ?? "";
    if (word !== undefined && heard !== word) throw new Error(`it said ${heard} instead of ${word}`);
    return heard;
  }

  /** Whether it has said something that nobody has heard yet. */
  get hasSpoken(): boolean {
    return this.#heard.length > 0;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
