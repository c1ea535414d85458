/** A child process that goes on while a test talks to it: a module script that says what it does line by line. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A child that runs. */
export interface Worker {
  readonly pid: number;
  /** Waits until the child has said a line that starts with a word, and gives what follows it; each line is given once. */
  said(word: string): Promise<string>;
  /** Tells the child a line on its standard input. */
  tell(line: string): void;
  signal(signal: NodeJS.Signals): void;
  /** Kills it, if it still runs, and waits for its end. */
  end(): Promise<void>;
}

/** Starts a child; what it writes to its standard error is shown. */
export function startWorker(script: string): Worker {
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.on("error", () => {});
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let ended = false;
  const wake = (): void => {
    for (const look of waiting) look();
  };
  const exit = new Promise<void>((resolve) => {
    child.on("exit", () => {
      ended = true;
      resolve();
      wake();
    });
  });
  createInterface(child.stdout).on("line", (line) => {
    lines.push(line);
    wake();
  });
  return {
    pid: child.pid ?? 0,
    said: (word) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const at = lines.findIndex((line) => line.split(" ", 1)[0] === word);
          if (at < 0 && !ended) return;
          waiting.delete(look);
          if (at < 0)
            return reject(new Error(`the worker ended before it said ${word}: ${lines.join("; ")}`));
          resolve(lines.splice(at, 1)[0]?.slice(word.length + 1) ?? "");
        };
        waiting.add(look);
        look();
      }),
    tell: (line) => {
      child.stdin.write(`${line}\n`);
    },
    signal: (signal) => {
      child.kill(signal);
    },
    end: async () => {
      child.kill("SIGKILL");
      await exit;
    },
  };
}
