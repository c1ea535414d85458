/** Folders are made once, and where none can be made it is said. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { makeFolders } from "../../src/core/folders.ts";

const base = mkdtempSync(join(tmpdir(), "holdfast-folders-"));
afterAll(() => rmSync(base, { recursive: true }));

it("makes those above, too, and gives the first that is new", () => {
  expect(makeFolders(join(base, "a", "b", "c"), 0o700)).toBe(join(base, "a"));
  expect(["a", "a/b", "a/b/c"].map((name) => statSync(join(base, name)).mode & 0o777)).toEqual([
    0o700, 0o700, 0o700,
  ]);
  expect(makeFolders(join(base, "a", "b", "c"))).toBeUndefined();
  expect(makeFolders(join(base, "a", "d"))).toBe(join(base, "a", "d"));
});

it("says what is in the way", () => {
  writeFileSync(join(base, "file"), "");
  expect(() => makeFolders(join(base, "file"))).toThrow(/EEXIST/);
  expect(() => makeFolders(join(base, "file", "a", "b"))).toThrow(/ENOTDIR/);
});

// Node's own recursive mkdir never ends there.
it.runIf(process.platform === "linux")("ends where nothing can be made", () => {
  expect(() => makeFolders("/proc/holdfast/a")).toThrow(/ENOENT/);
});
