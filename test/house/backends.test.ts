/** Every backend is complete: tested by the contract, documented, exported and listed with what it promises. */
import { describe, expect, it } from "vitest";
import { exists, foldersIn, read } from "./repository.ts";

const backends = foldersIn("src/backends");
const guarantees = read("docs/guarantees.md");

function exportsOfPackage(): unknown {
  const manifest: unknown = JSON.parse(read("package.json"));
  return typeof manifest === "object" && manifest !== null && "exports" in manifest ? manifest.exports : {};
}

it("there is a backend", () => {
  expect(backends).toContain("memory");
});

describe.each(backends)("backend %s", (name) => {
  it("runs the contract in its test", () => {
    const path = `test/backends/${name}.test.ts`;
    expect(exists(path), `${path} is missing`).toBe(true);
    expect(read(path), `${path} does not call backendContract`).toMatch(/\bbackendContract\(/);
  });

  it("has a page with the five headings", () => {
    const path = `docs/backends/${name}.md`;
    expect(exists(path), `${path} is missing`).toBe(true);
    const headings = read(path).match(/^## .*$/gm) ?? [];
    expect(headings, `headings of ${path}`).toEqual([
      "## Example",
      "## How it works",
      "## Guarantees and limits",
      "## Options",
      "## Operations",
    ]);
  });

  it("is exported", () => {
    expect(exportsOfPackage(), "exports in package.json").toMatchObject({
      [`./${name}`]: `./dist/backends/${name}/index.js`,
    });
  });

  it("has a row of traits in docs/guarantees.md", () => {
    const firstCells = guarantees.split("\n").flatMap((line) => /^\|([^|]*)\|/.exec(line)?.[1] ?? []);
    const names = firstCells.map((cell) => cell.replace(/[`*[\]]|\(.*?\)/g, "").trim());
    expect(names, "first cells of the tables in docs/guarantees.md").toContain(name);
  });
});
