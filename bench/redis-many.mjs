/**
 * 100,000 waiters on one name, or as many held locks, in one process on one Redis server: what they take there and here, every ten
 * seconds. Not a part of the suite: the figures are in docs/backends/redis.md. After npm run build:
 *
 *   node --expose-gc bench/redis-many.mjs waiters
 *   node --expose-gc bench/redis-many.mjs held
 */
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "../dist/index.js";
import { ask, startRedis } from "../scripts/lib/redis-servers.mjs";

const many = 100_000;
const looks = 6;
const [what = ""] = process.argv.slice(2);
const ttl = { waiters: "60s", held: "15s" }[what];
const { gc } = globalThis;
if (ttl === undefined || gc === undefined)
  throw new Error("node --expose-gc bench/redis-many.mjs waiters | held");

let warnings = 0;
process.on("warning", ({ name }) => {
  if (name === "MaxListenersExceededWarning") warnings += 1;
});

const { server, port } = await startRedis();
const locks = await connect(`redis://127.0.0.1:${port}`, { ttl });
try {
  const before = await used();
  const start = performance.now();
  const over = new AbortController();
  let ended = 0;
  if (what === "waiters") {
    await locks.acquire("one");
    for (let index = 0; index < many; index++) {
      locks.request("one", { signal: over.signal }, () => {}).catch(() => (ended += 1));
      if (index % 500 === 499) await pause(1);
    }
  } else {
    for (let from = 0; from < many; from += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, index) => locks.acquire(`held:${from + index}`)));
    }
  }
  await pause(1_000);
  console.log(`${many} ${what} after ${Math.round((performance.now() - start) / 1000)} s`);
  for (let look = 0; look < looks; look++) {
    const { here, there } = await used();
    const [ofHere, ofThere] = [here - before.here, there - before.there].map((bytes) =>
      Math.round(bytes / 1e6),
    );
    console.log(
      `in the process ${ofHere} MB, on the server ${ofThere} MB, warnings of listeners ${warnings}, failed ${ended}`,
    );
    await pause(10_000);
  }
  const cpu = await ask(port, "info", "cpu");
  console.log(/used_cpu_user:.*/.exec(cpu)?.[0]);
} finally {
  await server.remove();
  process.exit();
}

/** Bytes of the process and of the server. */
async function used() {
  gc?.();
  const { heapUsed, external } = process.memoryUsage();
  const memory = await ask(port, "info", "memory");
  return { here: heapUsed + external, there: Number(/used_memory:(\d+)/.exec(memory)?.[1]) };
}
