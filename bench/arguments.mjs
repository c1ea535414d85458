/** What the command line of the bench means. Runs nothing and prints nothing. */
import { parseArgs } from "node:util";

/** A command line that cannot be obeyed; the message says why. */
export class UsageError extends Error {}

/**
 * The help text.
 * @param {readonly string[]} suites
 */
export function usage(suites) {
  return `Usage: npm run bench -- <suite> [--quick] [--json]

Suites: ${suites.join(", ")}

  --quick   2 or 3 short rounds instead of 5 longer ones, without the slowest measurements of peers
  --json    print one JSON object { suite, rounds, contenders, ratios } and nothing else on stdout
            (npm adds two lines of its own unless it is called as: npm run -s bench -- <suite> --json)
  --help    print this

docs/benchmarks.md says what is measured and how to read it.
`;
}

/**
 * @param {readonly string[]} argv
 * @param {readonly string[]} suites the names that exist
 * @returns {{ help: true } | { help: false, suite: string, quick: boolean, json: boolean }}
 * @throws {UsageError}
 */
export function parseArguments(argv, suites) {
  const { values, positionals } = parse(argv);
  if (values.help) return { help: true };
  const [suite, ...rest] = positionals;
  const known = `suites: ${suites.join(", ")}`;
  if (suite === undefined) throw new UsageError(`no suite given; ${known}`);
  if (rest.length > 0) throw new UsageError(`one suite at a time, not also ${rest.join(", ")}`);
  if (!suites.includes(suite)) throw new UsageError(`unknown suite "${suite}"; ${known}`);
  return { help: false, suite, quick: values.quick, json: values.json };
}

/** @param {readonly string[]} argv */
function parse(argv) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        quick: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false, short: "h" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
