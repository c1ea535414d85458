/** Scripts in real child processes, run against a build of the sources: timers and exits cannot be seen from inside. */
import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The sources, compiled to a folder of their own. */
export interface Build {
  /** The address from which a script imports a module, given its path in src without its ending. */
  readonly address: (module: string) => string;
  readonly remove: () => Promise<void>;
}

/** Compiles the sources. */
export async function build(): Promise<Build> {
  // Inside the repository, so that optional packages are found as they would be by the package itself.
  await mkdir(join(root, ".cache"), { recursive: true });
  const folder = await mkdtemp(join(root, ".cache", "build-"));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const project = join(root, "tsconfig.build.json");
  await promisify(execFile)(process.execPath, [tsc, "-p", project, "--outDir", folder]);
  return {
    address: (module) => pathToFileURL(join(folder, `${module}.js`)).href,
    remove: () => rm(folder, { recursive: true }),
  };
}

/** How a child ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/** Runs a module script to its end; a child that does not end within the bound is killed, and its signal shows it. */
export function run(script: string, boundMs = 10_000): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: boundMs,
      killSignal: "SIGKILL",
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, output: output.trim() }));
  });
}
