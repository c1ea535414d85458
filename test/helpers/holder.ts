/** A process of its own that takes one lock on ZooKeeper and holds it until it is told, paused or killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Build } from "./child.ts";

/** What such a process is started with. */
export interface HolderOptions {
  /** Options of zookeeperBackend. */
  readonly backend: Readonly<Record<string, unknown>>;
  readonly lock: string;
  readonly ttl: number;
}

/** The process. It says "granted" with its token, "lost" when its signal aborts, and answers "held" and "release". */
export class Holder {
  readonly #child: ChildProcess;
  readonly #heard: string[] = [];
  #onNews: () => void = () => {};
  #ended = false;

  constructor(build: Build, { backend, lock, ttl }: HolderOptions) {
    const script = `
      import { createInterface } from "node:readline";
      import { connect } from "${build.address("index")}";
      import { zookeeperBackend } from "${build.address("backends/zookeeper/index")}";
      const locks = await connect(zookeeperBackend(${JSON.stringify(backend)}));
      const lock = await locks.acquire(${JSON.stringify(lock)}, { ttl: ${ttl} });
      lock.signal.addEventListener("abort", () => console.log("lost"));
      console.log("granted " + lock.token);
      for await (const order of createInterface({ input: process.stdin })) {
        if (order === "held") console.log("held " + lock.held);
        else if (order === "release") console.log(await lock.release());
      }`;
    this.#child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.on("exit", () => {
      this.#ended = true;
      this.#onNews();
    });
    if (this.#child.stdout === null) throw new Error("the process has no output");
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.#heard.push(line);
      this.#onNews();
    });
  }

  tell(order: "held" | "release"): void {
    this.#child.stdin?.write(`${order}\n`);
  }

  /** Its next word. */
  async hear(): Promise<string> {
    while (this.#heard.length === 0) {
      if (this.#ended) throw new Error("the process has ended");
      await new Promise<void>((resolve) => {
        this.#onNews = resolve;
      });
    }
    return this.#heard.shift() ?? "";
  }

  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
