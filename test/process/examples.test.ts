/** Every example runs on the built package and ends well; each asserts for itself what it shows. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { filesUnder, read, root } from "../house/repository.ts";

const execute = promisify(execFile);
const examples = filesUnder("examples", ".mjs");

it("there are examples", () => {
  expect(examples.length).toBeGreaterThanOrEqual(3);
});

it.each(examples)("%s asserts what it shows, and runs", async (path) => {
  expect(read(path)).toMatch(/^assert\./m);
  const { stdout, stderr } = await execute(process.execPath, [join(root, path)], { timeout: 15_000 });
  expect(stdout).not.toBe("");
  expect(stderr).toBe("");
});
