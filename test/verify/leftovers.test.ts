/** What a run has left, in a store that answers late and one that does not answer. */
import { expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.ts";
import type { Backend } from "../../src/core/backend.ts";
import { LockManager } from "../../src/core/manager.ts";
import { leftWithin } from "../../src/verify/live/leftovers.ts";

const unreached = new Error("nobody is reached");

/** A store whose first listings fail. */
function failing(times: number): Backend {
  const backend = memoryBackend();
  const queues = backend.queues.bind(backend);
  let left = times;
  backend.queues = (prefix: string) => (left-- > 0 ? Promise.reject(unreached) : queues(prefix));
  return backend;
}

it("is asked for again if the store does not answer, until the time is over", async () => {
  const backend = failing(3);
  const locks = new LockManager(backend);
  await locks.acquire("left/a");
  const looking = leftWithin(1_000, backend, "left/");
  expect(await looking).toEqual({ queues: 1, entries: 1 });
  await locks.close();
});

it("is not taken for nothing if the store never answers", async () => {
  await expect(leftWithin(300, failing(1_000), "left/")).rejects.toBe(unreached);
});
