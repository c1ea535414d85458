/** TypeScript in the pages compiles against the built package, and blocks marked `run` run. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { exists, pages, read, root } from "./repository.ts";

const execute = promisify(execFile);
const folder = join(root, ".cache", "docs");
/** When a block that runs is taken to hang: one of them runs the whole contract. */
const hangMs = 100_000;

interface Block {
  /** The page and the line of the opening fence, for people. */
  readonly place: string;
  /** What follows `ts` on the fence: nothing, `run` or `no-check`. */
  readonly marker: string;
  /** The name of the file it is compiled as, without its ending. */
  readonly file: string;
  /** The block on the lines it has in its page, so that the compiler speaks of these. */
  readonly code: string;
}

/**
 * The ```ts blocks of a page. `<!-- ts setup … -->` brings lines that readers need not see, such as
 * `declare const locks: LockManager;`, in front of the blocks below it.
 */
function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = [];
  let setup: string[] = [];
  let open: { start: number; marker: string | undefined; end: RegExp; lines: string[] } | undefined;
  read(page)
    .split("\n")
    .forEach((line, index) => {
      if (open === undefined) {
        const fence = /^ *(```+)(?:ts|typescript)(?: +(.*?))? *$/.exec(line);
        const begins = fence !== null || line === "<!-- ts setup";
        const end = fence === null ? /^-->$/ : new RegExp(`^ *${fence[1]} *$`);
        if (begins) open = { start: index, marker: fence ? (fence[2] ?? "") : undefined, end, lines: [] };
      } else if (!open.end.test(line)) {
        open.lines.push(line);
      } else {
        const placed = [...setup, ...Array(open.start + 1 - setup.length).fill(""), ...open.lines];
        if (open.marker === undefined) setup = placed;
        else {
          const place = `${page}:${open.start + 1}`;
          const file = place.replace(/[/:]/g, "-");
          blocks.push({ place, marker: open.marker, file, code: `${placed.join("\n")}\n` });
        }
        open = undefined;
      }
    });
  if (open !== undefined) throw new Error(`${page}:${open.start + 1}: a block that never ends`);
  return blocks;
}

const blocks = pages.flatMap(blocksOf);
const checked = blocks.filter(({ marker }) => marker !== "no-check");
const runnable = checked.filter(({ marker }) => marker === "run");

const tsconfig = {
  extends: "../../tsconfig.json",
  compilerOptions: {
    noEmit: false,
    rootDir: ".",
    outDir: "out",
    declaration: false,
    isolatedDeclarations: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
    moduleDetection: "force",
  },
  include: ["*.ts"],
};

/** All that the compiler says about the blocks, one line per error. */
async function compile(): Promise<string> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  for (const { file, code } of checked) writeFileSync(join(folder, `${file}.ts`), code);
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const { stdout } = await execute(tsc, ["-p", ".", "--pretty", "false"], { cwd: folder }).catch(
    (error: unknown) => {
      if (error instanceof Error && "stdout" in error) return { stdout: String(error.stdout) };
      throw error;
    },
  );
  return stdout;
}

describe("code in the pages", () => {
  let complaints = "";

  beforeAll(async () => {
    if (!exists("dist/index.d.ts")) throw new Error("dist is missing: npm run build");
    if (checked.length > 0) complaints = await compile();
  });

  it("has only known markers: none, run, no-check", () => {
    const unknown = blocks.filter(({ marker }) => !["", "run", "no-check"].includes(marker));
    expect(unknown.map(({ place, marker }) => `${place}: ${marker}`)).toEqual([]);
  });

  it("is all that the compiler complains about", () => {
    const ofBlocks = checked.flatMap(({ file }) => linesAbout(complaints, file));
    const others = complaints.split("\n").filter((line) => /error TS/.test(line) && !ofBlocks.includes(line));
    expect(others).toEqual([]);
  });

  it.each(checked)("$place compiles", ({ file }) => {
    expect(linesAbout(complaints, file)).toEqual([]);
  });

  it.each(runnable)(
    "$place runs",
    async ({ file }) => {
      // A folder of its own for files, so that it does not meet what another run has left.
      const own = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
      const env = { ...process.env, TMPDIR: own, XDG_STATE_HOME: own };
      try {
        await execute(process.execPath, [join("out", `${file}.js`)], {
          cwd: folder,
          env,
          timeout: hangMs,
        }).catch((error: unknown) => {
          // A test runner says what failed on its standard output.
          const said = error instanceof Error && "stdout" in error ? String(error.stdout) : "";
          const failures = said.split("\n").filter((line) => /^\s*(not ok|error:|failureType)/.test(line));
          throw new Error([String(error), ...failures].join("\n"), { cause: error });
        });
      } finally {
        rmSync(own, { recursive: true, force: true });
      }
    },
    hangMs + 5_000,
  );
});

function linesAbout(complaints: string, file: string): readonly string[] {
  return complaints.split("\n").filter((line) => line.startsWith(`${file}.ts(`));
}
