/** The contract suite as tests: registers every case with a test runner. The cases themselves are data, in ./cases. */
import assert from "node:assert/strict";
import * as nodeTest from "node:test";
import type { ContractCase } from "./case.ts";
import { contractCases } from "./cases/index.ts";
import { runCase } from "./run.ts";
import type { ContractStore, Pace } from "./store.ts";

/** Cases that a store is excused from, and why; printed with the results. */
export interface Skip {
  readonly reason: string;
  /** Names of cases; one that does not exist fails the suite. */
  readonly cases: readonly string[];
}

/** The part of a test's context that the suite uses. */
export interface TestContext {
  skip(reason: string): void;
}

/**
 * The part of a test runner that the suite uses; those of vitest, jest and mocha are of this form. Where a test is given
 * no context, as in the latter two, a case that does not apply passes and says so on the console.
 */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: (name: string, body: (context?: TestContext) => Promise<void>, limitMs: number) => unknown;
}

/** What backendContract takes. */
export interface ContractOptions extends Pace {
  /** How the backend is called in the results. */
  readonly name: string;
  /** Gives a fresh store; called once for each case. */
  readonly open: () => Promise<ContractStore> | ContractStore;
  readonly skip?: readonly Skip[] | undefined;
  /**
   * Where the cases are registered.
   * @default the global `describe` and `it`, else those of node:test
   */
  readonly runner?: TestRunner | undefined;
}

/** Closing may take as long again as the case. */
const closingShare = 2;

/** Registers the whole contract for one backend. */
export function backendContract(options: ContractOptions): void {
  const { describe, it } = options.runner ?? globalRunner() ?? nodeRunner;
  const { name, open, skip = [], ...pace } = options;
  const limitMs = (pace.limitMs ?? 60_000) * closingShare;
  describe(`contract: ${name}`, () => {
    it("skips name existing cases", async () => checkSkips(skip), limitMs);
    for (const group of new Set(contractCases.map((each) => each.group))) {
      describe(group, () => {
        for (const each of contractCases.filter((one) => one.group === group)) {
          const excuse = skip.find((one) => one.cases.includes(each.name));
          it(
            excuse === undefined ? each.name : `${each.name} (skipped: ${excuse.reason})`,
            // Without a parameter of its own: jest and mocha would take it for a callback, and wait for that.
            (...[context]) => runIn(context, each, excuse, open, pace),
            limitMs,
          );
        }
      });
    }
  });
}

async function runIn(
  context: TestContext | undefined,
  each: ContractCase,
  excuse: Skip | undefined,
  open: ContractOptions["open"],
  pace: Pace,
): Promise<void> {
  const skip = (reason: string): void => {
    if (context === undefined) console.info(`skipped: ${each.name}: ${reason}`);
    else context.skip(reason);
  };
  if (excuse !== undefined) return skip(excuse.reason);
  const unmet = await runCase(each, open, pace);
  if (unmet !== null) skip(`does not apply: it needs ${unmet}`);
}

/** Rejects a skip that names no existing case, or gives no reason. */
export function checkSkips(skip: readonly Skip[]): void {
  const known = new Set(contractCases.map(({ name }) => name));
  for (const { reason, cases } of skip) {
    assert.notEqual(reason.trim(), "", "a skip must give its reason");
    for (const each of cases) assert.ok(known.has(each), `a skip names no existing case: ${each}`);
  }
}

const nodeRunner: TestRunner = {
  describe: (name, body) => nodeTest.describe(name, body),
  it: (name, body, limitMs) => nodeTest.it(name, { timeout: limitMs }, (context) => body(context)),
};

function globalRunner(): TestRunner | null {
  const found: object = globalThis;
  return isRunner(found) ? found : null;
}

function isRunner(found: object): found is TestRunner {
  const has = (key: string): boolean => typeof Reflect.get(found, key) === "function";
  return has("describe") && has("it");
}
