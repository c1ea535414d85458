/** The command `npm run bench`: reads arguments, runs one suite, prints. Progress goes to stderr, the result to stdout. */
import { parseArguments, usage, UsageError } from "./arguments.mjs";
import { measureInChild } from "./child.mjs";
import { fullEffort, quickEffort, roundsOf, runRounds, sumUp } from "./harness.mjs";
import { formatNumber, formatReport } from "./report.mjs";
import { loadSuite, suiteNames } from "./suites.mjs";

const exitUsage = 64;
const exitInterrupted = 130;

const interruption = new AbortController();
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
  process.once(signal, () => interruption.abort());
}

try {
  await main(await suiteNames());
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`bench: ${error.message}\nTry: npm run bench -- --help\n`);
    process.exitCode = exitUsage;
  } else {
    process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = interruption.signal.aborted ? exitInterrupted : 1;
  }
}

/** @param {readonly string[]} suites */
async function main(suites) {
  const options = parseArguments(process.argv.slice(2), suites);
  if (options.help) {
    process.stdout.write(usage(suites));
    return;
  }
  // A broker of one of the peers tells its deeds by console.log; stdout belongs to the result.
  console.log = console.error;
  const suite = await loadSuite(options.suite);
  const effort = options.quick ? quickEffort : fullEffort;
  const rounds = await runRounds(
    suite,
    effort,
    (job) => measureInChild(job, { ...suite.measurements[job.measurement], signal: interruption.signal }),
    (round, { contender }, values) => {
      const found = Object.entries(values).map(
        ([metric, value]) => `${metric} ${formatNumber(value)} ${suite.metrics[metric]?.unit}`,
      );
      process.stderr.write(
        `round ${round + 1}/${roundsOf(suite, effort)}  ${contender}  ${found.join(", ")}\n`,
      );
    },
  );
  const report = sumUp(suite, effort, rounds);
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : formatReport(report));
}
