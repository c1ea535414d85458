/** The child process of one measurement: opens the contender, measures, prints the values as one line of JSON, ends. */
import { loadSuite } from "./suites.mjs";

/** @import { Job } from "./types.ts" */

/** @type {Job} */
const job = JSON.parse(process.argv[2] ?? "");
const suite = await loadSuite(job.suite);
const contender = suite.contenders.find(({ name }) => name === job.contender);
const measurement = suite.measurements[job.measurement];
if (contender === undefined || measurement === undefined) {
  throw new Error(`suite ${suite.name} has no ${job.measurement} of ${job.contender}`);
}

const subject = await contender.open(job.context);
const values = await measurement.run(subject, job.budget, job);
await contender.close?.(subject);

// Waiters and timers that a measurement left behind must not keep the process.
process.stdout.write(`${JSON.stringify(values)}\n`, () => process.exit(0));
