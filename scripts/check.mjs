/** npm run check: everything but the tests, one step after the other; all are run, so that one look shows all that is wrong. */
import { Failure, main, run } from "./lib/run.mjs";

// The build comes first: examples are type-checked against it.
const steps = ["build", "lint", "format:check", "types", "knip", "api:check", "check:package"];

await main(async () => {
  /** @type {string[]} */
  const failed = [];
  for (const step of steps) {
    const start = performance.now();
    console.log(`\n--- ${step}`);
    const { code } = await run("npm", ["run", "--silent", step]);
    if (code !== 0) failed.push(step);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(`--- ${step}: ${code === 0 ? "ok" : "FAILED"} (${seconds} s)`);
  }
  if (failed.length > 0) throw new Failure(`Failed: ${failed.join(", ")}. Alone: npm run <name>`);
});
