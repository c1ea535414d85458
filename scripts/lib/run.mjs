/** Runs other programs for the scripts and says plainly which one failed; what to run is left to the scripts. */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

/** What scripts keep between runs; git ignores it. */
export const cache = join(root, ".cache");

/** A failure whose message says all that people need: printed without a stack. */
export class Failure extends Error {}

/** The name of this package and what it exports: each specifier and the file it stands for. */
export async function readManifest() {
  const { name, exports } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const entries = Object.entries(exports).map(([subpath, target]) => {
    if (typeof target !== "string")
      throw new Failure(`exports of package.json: ${subpath} is not a plain path`);
    return { specifier: `${name}${subpath.slice(1)}`, target };
  });
  return { name: String(name), entries };
}

/** The path of a tool that npm installed. */
export function tool(/** @type {string} */ name) {
  return join(root, "node_modules", ".bin", name);
}

/**
 * Runs a program without input and gives its exit code and, when quiet, all that it printed. Signals that end a script
 * end the program too.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, quiet?: boolean }} [options]
 * @returns {Promise<{ code: number, output: string }>}
 */
export function run(command, args, { cwd = root, env = process.env, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const shown = quiet ? "pipe" : "inherit";
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", shown, shown] });
    let output = "";
    const collect = (/** @type {string} */ text) => (output += text);
    child.stdout?.setEncoding("utf8").on("data", collect);
    child.stderr?.setEncoding("utf8").on("data", collect);
    const forward = (/** @type {NodeJS.Signals} */ signal) => child.kill(signal);
    process.on("SIGINT", forward).on("SIGTERM", forward);
    child.on("error", (cause) => reject(new Failure(`${command} could not be started: ${cause.message}`)));
    child.on("close", (code) => {
      process.off("SIGINT", forward).off("SIGTERM", forward);
      resolve({ code: code ?? 1, output });
    });
  });
}

/**
 * Runs a program quietly and gives what it printed; when it fails, that is shown in the Failure.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options]
 */
export async function mustRun(command, args, options) {
  const { code, output } = await run(command, args, { ...options, quiet: true });
  if (code !== 0) {
    throw new Failure(`${output.trimEnd()}\n${basename(command)} ${args.join(" ")}: ended with code ${code}`);
  }
  return output;
}

/** Runs a script's work; a Failure is printed by its message alone, and the exit code says so. */
export async function main(/** @type {() => Promise<void>} */ work) {
  try {
    await work();
  } catch (error) {
    console.error(error instanceof Failure ? `\n${error.message}` : error);
    process.exitCode = 1;
  }
}
