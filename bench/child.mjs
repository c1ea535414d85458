/** Runs one measurement in a fresh child process that cannot outlive its deadline. What the child does is in measure.mjs. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

/** @import { Job, Values } from "./types.ts" */

/**
 * @typedef {object} ChildOptions
 * @property {readonly string[]} [nodeFlags]
 * @property {number} [deadlineMs] after this the child is killed and the call rejects
 * @property {AbortSignal} [signal] kills the child when it aborts
 * @property {URL} [entry] the script of the child, which prints the values as its last line
 */

/**
 * Rejects, with the child's own words, when it fails, hangs or prints no values.
 * @param {Job} job
 * @param {ChildOptions} [options]
 * @returns {Promise<Values>}
 */
export function measureInChild(job, options = {}) {
  const { nodeFlags = [], deadlineMs = 60_000, signal } = options;
  const entry = options.entry ?? new URL("./measure.mjs", import.meta.url);
  const title = `${job.suite} / ${job.measurement} / ${job.contender}`;
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [...nodeFlags, fileURLToPath(entry), JSON.stringify(job)],
      { timeout: deadlineMs, killSignal: "SIGKILL", ...(signal === undefined ? {} : { signal }) },
      (error, stdout, stderr) => {
        if (signal?.aborted) {
          reject(new Error(`${title}: interrupted`));
        } else if (error?.killed) {
          reject(
            new Error(`${title}: child ${child.pid} did not end within ${deadlineMs} ms and was killed`),
          );
        } else if (error) {
          const end = error.signal ? `was ended by ${error.signal}` : `failed with exit code ${error.code}`;
          reject(new Error(`${title}: child ${child.pid} ${end}\n${stderr.trimEnd()}`));
        } else {
          try {
            resolve(readValues(stdout));
          } catch (cause) {
            reject(new Error(`${title}: child ${child.pid} printed no values but: ${stdout}`, { cause }));
          }
        }
      },
    );
  });
}

/**
 * @param {string} stdout
 * @returns {Values}
 */
function readValues(stdout) {
  /** @type {unknown} */
  const values = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
  if (typeof values !== "object" || values === null) throw new TypeError("not an object");
  return Object.fromEntries(
    Object.entries(values).map(([metric, value]) => {
      if (!Number.isFinite(value)) throw new TypeError(`${metric} is not a number`);
      return [metric, value];
    }),
  );
}
