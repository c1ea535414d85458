/** A process that stands still: blocks the event loop, also in the middle of a call. */

/** Blocks the event loop. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Makes a call, lets it be sent, and blocks the event loop for so long: by then its answer has come, and was not read. */
export async function blockedDuring<T>(ms: number, call: () => Promise<T> | T): Promise<T> {
  const answer = call();
  // Some libraries write with the next turn of the event loop.
  await new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
  block(ms);
  return answer;
}
