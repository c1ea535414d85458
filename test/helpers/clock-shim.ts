/** Servers whose clocks can be moved: builds the preloaded library beside this file, and writes the offsets that it reads. */
import { execFile } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The clocks of several servers. */
export interface Clocks {
  /** The environment in which a server has its clock. */
  env(index: number): NodeJS.ProcessEnv;
  /** Sets how far its clock is ahead of the machine's, in milliseconds. */
  set(index: number, ms: number): void;
  remove(): void;
}

/** Makes so many clocks that can be moved. */
export async function makeClocks(count: number): Promise<Clocks> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-clocks-"));
  const library = process.env["HOLDFAST_TEST_CLOCK_SHIM"] ?? join(folder, "clock-shim.so");
  if (process.env["HOLDFAST_TEST_CLOCK_SHIM"] === undefined) {
    const source = fileURLToPath(new URL("clock-shim.c", import.meta.url));
    await promisify(execFile)("gcc", ["-O2", "-shared", "-fPIC", "-o", library, source]);
  }
  const files = Array.from({ length: count }, (_, index) => join(folder, `offset-${index}`));
  for (const file of files) writeFileSync(file, Buffer.alloc(8));
  return {
    env: (index) => ({ ...process.env, LD_PRELOAD: library, CLOCK_OFFSET_FILE: files[index] }),
    set: (index, ms) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(ms));
      // In place: the server has mapped the file.
      const file = openSync(files[index] ?? "", "r+");
      writeSync(file, bytes, 0, 8, 0);
      closeSync(file);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
