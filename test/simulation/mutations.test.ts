/** The simulator finds what it is there for: each mutation of the core within 10,000 seeds, and nothing in the real core. */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Mutation, mutations } from "./mutations.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const mostSeeds = 10_000;
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-mutations-"));
  const original = join(folder, "original");
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  execFileSync(process.execPath, [
    tsc,
    "-p",
    join(root, "tsconfig.build.json"),
    "--outDir",
    join(original, "dist"),
  ]);
  cpSync(join(root, "package.json"), join(original, "package.json"));
  cpSync(join(root, "scripts", "simulate.mjs"), join(original, "scripts", "simulate.mjs"));
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("mutations of the core", () => {
  it.each(mutations)(
    "$name: found",
    async (mutation) => {
      const { code, text } = await simulate(mutated(mutation));
      expect(text).toMatch(/Seed \d+ is invalid/);
      expect(code).toBe(1);
    },
    300_000,
  );

  it("the core as it is: nothing found", async () => {
    const { code, text } = await simulate(join(folder, "original"), 1_000);
    expect(text).not.toContain("invalid");
    expect(code).toBe(0);
  }, 120_000);
});

/** A copy of the built package with one change in it. */
function mutated({ name, from, to }: Mutation): string {
  const copy = join(folder, `${mutations.findIndex((mutation) => mutation.name === name)}`);
  cpSync(join(folder, "original"), copy, { recursive: true });
  const places = ["core", "backends/memory"].flatMap((part) => {
    const dist = join(copy, "dist", part);
    return readdirSync(dist).map((file) => join(dist, file));
  });
  const files = places.filter((file) => file.endsWith(".js") && readFileSync(file, "utf8").includes(from));
  expect(files).toHaveLength(1);
  for (const file of files) {
    const parts = readFileSync(file, "utf8").split(from);
    expect(parts).toHaveLength(2);
    writeFileSync(file, parts.join(to));
  }
  return copy;
}

function simulate(copy: string, seeds = mostSeeds): Promise<{ code: number | null; text: string }> {
  const script = join(copy, "scripts", "simulate.mjs");
  const child = spawn(process.execPath, [script, "--seeds", `${seeds}`, "--jobs", "1"]);
  let text = "";
  child.stdout.on("data", (data: Buffer) => (text += data.toString()));
  child.stderr.on("data", (data: Buffer) => (text += data.toString()));
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ code, text }));
  });
}
