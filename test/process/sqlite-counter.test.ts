/** The cheap proof: 32 processes count in a plain file under one lock, a thousand times each, and no count may be lost. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Build, build } from "../helpers/child.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";
import { startWorker } from "../helpers/worker.ts";

const processes = 32;
const counts = 1_000;

let built: Build;
let file: SqliteFile;

beforeAll(async () => {
  built = await build();
  file = sqliteFile();
}, 60_000);

afterAll(async () => {
  file.remove();
  await built.remove();
});

it("32 processes count to 32,000, with tokens that grow in the order of the counts", async () => {
  const [counter, tokens] = [join(file.folder, "counter"), join(file.folder, "tokens")];
  writeFileSync(counter, "0");
  writeFileSync(tokens, "");
  // All start at a word, so that nobody has finished before the last has begun.
  const workers = Array.from({ length: processes }, () =>
    startWorker(`
      import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
      import { connect } from "${built.address("index")}";
      const alive = setInterval(() => {}, 1000);
      const locks = await connect("sqlite:${file.path}");
      console.log("ready");
      process.stdin.once("data", async () => {
        for (let turn = 0; turn < ${counts}; turn++) {
          await locks.request("counter", async (lock) => {
            const read = Number(readFileSync(${JSON.stringify(counter)}, "utf8"));
            appendFileSync(${JSON.stringify(tokens)}, lock.token + "\\n");
            writeFileSync(${JSON.stringify(counter)}, String(read + 1));
          });
        }
        await locks.close();
        clearInterval(alive);
        process.stdin.destroy();
        console.log("done");
      });`),
  );
  try {
    await Promise.all(workers.map((worker) => worker.said("ready")));
    for (const worker of workers) worker.tell("go");
    await Promise.all(workers.map((worker) => worker.said("done")));
  } finally {
    await Promise.all(workers.map((worker) => worker.end()));
  }
  expect(Number(readFileSync(counter, "utf8"))).toBe(processes * counts);
  const seen = readFileSync(tokens, "utf8").trim().split("\n").map(BigInt);
  expect(seen).toHaveLength(processes * counts);
  expect(seen.every((token, turn) => turn === 0 || token > (seen[turn - 1] ?? token))).toBe(true);
  expect(file.rows()).toEqual([]);
  expect(file.sockets()).toEqual([]);
}, 300_000);
