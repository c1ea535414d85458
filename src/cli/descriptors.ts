/**
 * The descriptors that the CLI writes to. They are shared with the command that is run, and maybe with others: a stream
 * of Node would make a pipe non-blocking for all of them, and a write that blocks would keep this process from renewing a
 * lock or ending a command in time. So another thread writes, in call order, and the descriptors stay as they are.
 */
import { write } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sink } from "./output.ts";

/** A pipe that somebody else made non-blocking is full: after how many milliseconds it is tried again. */
const againMs = 5;

/** stdout and stderr, in one order. */
export class Descriptors {
  #last: Promise<void> = Promise.resolve();
  readonly #onFailure: (descriptor: number) => void;

  /** `onFailure` hears that a descriptor takes nothing any more. */
  constructor(onFailure: (descriptor: number) => void) {
    this.#onFailure = onFailure;
  }

  /** A descriptor to write to; where it is a terminal, `terminal` knows its size. */
  sink(descriptor: number, terminal?: Pick<Sink, "columns" | "rows">): Sink {
    return {
      isTTY: terminal !== undefined,
      get columns() {
        return terminal?.columns;
      },
      get rows() {
        return terminal?.rows;
      },
      write: (text) => this.#write(descriptor, Buffer.from(text)),
      written: () => this.#last,
    };
  }

  /** Resolves when all that was written so far has left this process. */
  written(): Promise<void> {
    return this.#last;
  }

  #write(descriptor: number, bytes: Buffer): void {
    this.#last = this.#last.then(() => writeAll(descriptor, bytes)).catch(() => this.#onFailure(descriptor));
  }
}

async function writeAll(descriptor: number, bytes: Buffer): Promise<void> {
  let left = bytes;
  while (left.length > 0) {
    const taken = await writeSome(descriptor, left);
    if (taken === 0) await sleep(againMs);
    left = left.subarray(taken);
  }
}

/** How many bytes were taken. */
function writeSome(descriptor: number, bytes: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, (error, taken) => {
      if (error === null) resolve(taken);
      else if (error.code === "EAGAIN") resolve(0);
      else reject(error);
    });
  });
}
