/** A process that stands still: blocks the event loop, also in the middle of a call. */
import { readFileSync } from "node:fs";

/** Blocks the event loop. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Makes a call, lets it be sent, and blocks the event loop for so long: by then its answer has come, and was not read. A server that
 * may have to wait for a disk gets longer if need be: what comes from its port is waited for.
 */
export async function blockedDuring<T>(ms: number, call: () => Promise<T> | T, port?: number): Promise<T> {
  let answered = false;
  const answer = Promise.resolve(call());
  const note = (): void => {
    answered = true;
  };
  answer.then(note, note);
  // Some libraries write with the next turn of the event loop.
  await new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
  block(ms);
  if (!answered && port !== undefined) blockUntilUnread(port);
  return answer;
}

/** Blocks until something has come from the server that was not read. */
function blockUntilUnread(port: number): void {
  for (let waits = 0; !hasUnread(port); waits++) {
    if (waits === 100) throw new Error(`the server at port ${port} has not answered for 10 s`);
    block(100);
  }
  // An answer may come in pieces.
  block(100);
}

/** Whether some connection to this port of this machine has received bytes that nobody has read. */
function hasUnread(port: number): boolean {
  const remote = port.toString(16).toUpperCase().padStart(4, "0");
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .some((line) => {
      const [, , to, , queues] = line.trim().split(/\s+/);
      return to?.endsWith(`:${remote}`) && !queues?.endsWith(":00000000");
    });
}
