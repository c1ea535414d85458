/** A child process that is told what to do line by line, and says what came of it line by line. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** The process, as a test talks to it. */
export class LineProcess {
  readonly #child: ChildProcess;
  readonly #heard: string[] = [];
  #onNews: () => void = () => {};
  #ended = false;

  constructor(command: string, args: readonly string[]) {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    // One that has ended takes no more orders; that it has ended is told otherwise.
    child.stdin.on("error", () => {});
    child.on("exit", () => {
      this.#ended = true;
      this.#onNews();
    });
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

  /** Whether it has said something that nobody has heard yet. */
  get hasSpoken(): boolean {
    return this.#heard.length > 0;
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
