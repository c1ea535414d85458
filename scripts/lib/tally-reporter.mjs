/**
 * A reporter for vitest: counts the tests and keeps a text for all that failed, errors that belong to no test included, in the
 * file that HOLDFAST_TALLY names. What is printed on the way is left to vitest's own reporters.
 */
import { writeFileSync } from "node:fs";

/** @typedef {{ passed: number, failed: number, skipped: number, failures: string[] }} Tally */
/** @typedef {import("vitest/node").TestModule} TestModule */
/** @typedef {{ readonly name?: string, readonly message: string, readonly stack?: string }} Thrown */

export default class TallyReporter {
  /**
   * @param {readonly TestModule[]} modules
   * @param {readonly (Thrown & Readonly<Record<string, unknown>>)[]} unhandled
   */
  onTestRunEnd(modules, unhandled) {
    /** @type {Tally} */
    const tally = { passed: 0, failed: 0, skipped: 0, failures: [] };
    for (const module of modules) count(module, tally);
    for (const error of unhandled) {
      const origin = [error["VITEST_TEST_PATH"], error["VITEST_TEST_NAME"]].filter(Boolean).join(": ");
      tally.failures.push(`an error that nobody handled, ${origin || "of no test"}${excerpt([error])}`);
    }
    tally.failed = tally.failures.length;
    const path = process.env["HOLDFAST_TALLY"];
    if (path !== undefined) writeFileSync(path, JSON.stringify(tally));
  }
}

function count(/** @type {TestModule} */ module, /** @type {Tally} */ tally) {
  const file = module.relativeModuleId;
  // What could not be loaded, and what failed before its first test or after its last one.
  for (const part of [module, ...module.children.allSuites()]) {
    const errors = part.errors();
    const shown = part.type === "suite" ? `${file}: ${part.fullName}` : file;
    if (errors.length > 0) tally.failures.push(shown + excerpt(errors));
  }
  for (const test of module.children.allTests()) {
    const { state, errors = [] } = test.result();
    if (state === "passed") tally.passed += 1;
    else if (state === "failed") tally.failures.push(`${file}: ${test.fullName}${excerpt(errors)}`);
    else tally.skipped += 1;
  }
}

/** The whole message stands where vitest printed it, thousands of lines up: here, what tells one failure from another. */
function excerpt(/** @type {readonly Thrown[]} */ errors) {
  const lines = errors.flatMap(({ name = "Error", message, stack = "" }) => {
    const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
    return [...`${name}: ${message}`.split("\n").slice(0, 8), ...frames.slice(0, 5)];
  });
  return lines.map((line) => `\n    ${line}`).join("");
}
