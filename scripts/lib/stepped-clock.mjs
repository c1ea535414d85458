/** A wall clock that can be stepped for one server, for tests: a library that is compiled here and preloaded into it. Needs gcc. */
import { execFile } from "node:child_process";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { makeFolder, removeFolder } from "./server-process.mjs";

const source = fileURLToPath(new URL("./stepped-clock.c", import.meta.url));

/** Compiles the library. The environment is for the server; `step` moves its clock to so many milliseconds from the real one. */
export async function steppedClock() {
  const folder = await makeFolder("clock");
  const [library, offset] = [join(folder, "clock.so"), join(folder, "offset")];
  await promisify(execFile)("gcc", ["-O2", "-shared", "-fPIC", "-o", library, source]);
  await writeFile(offset, bytes(0));
  return {
    env: { ...process.env, LD_PRELOAD: library, CLOCK_OFFSET_FILE: offset },
    step: async (/** @type {number} */ ms) => {
      // In place: the server has the file mapped.
      const file = await open(offset, "r+");
      await file.write(bytes(ms), 0, 8, 0);
      await file.close();
    },
    remove: () => removeFolder(folder),
  };
}

/** @param {number} ms */
function bytes(ms) {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64LE(BigInt(ms));
  return buffer;
}
