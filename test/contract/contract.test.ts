/** How the contract is registered with a test runner: skips with their reasons, cases that do not apply, failures. */
import { describe, expect, it, vi } from "vitest";
import {
  backendContract,
  checkSkips,
  contractCases,
  type ContractOptions,
  manualMemoryStore,
  type TestContext,
} from "../../src/testing/index.ts";
import { brokenBackends } from "../../src/testing/broken/index.ts";

interface Registered {
  readonly name: string;
  readonly run: () => Promise<{ skipped: string | null }>;
}

/** Registers the contract with a runner that only takes notes. */
function register(options: Omit<ContractOptions, "runner" | "name">): Registered[] {
  const tests: Registered[] = [];
  const note = (name: string, body: (context?: TestContext) => Promise<void>): void => {
    const run: Registered["run"] = async () => {
      let skipped: string | null = null;
      await body({
        skip: (reason) => {
          skipped = reason;
        },
      });
      return { skipped };
    };
    tests.push({ name, run });
  };
  const runner = { describe: (_name: string, body: () => void) => body(), it: note };
  backendContract({ ...options, name: "tested", runner });
  return tests;
}

function testNamed(tests: readonly Registered[], start: string): Registered {
  const found = tests.find(({ name }) => name.startsWith(start));
  if (found === undefined) throw new Error(`no test ${start}`);
  return found;
}

function cannotOpen(): never {
  throw new Error("opened");
}

const known = "a client may be closed twice";

describe("backendContract", () => {
  it("registers one test for each case, and one for the skips", () => {
    const tests = register({ open: manualMemoryStore });
    expect(tests.map(({ name }) => name)).toEqual([
      "skips name existing cases",
      ...contractCases.map(({ name }) => name),
    ]);
  });

  it("runs a case on a store", async () => {
    const tests = register({ open: manualMemoryStore });
    await expect(testNamed(tests, known).run()).resolves.toEqual({ skipped: null });
  });

  it("fails a case that a store breaks", async () => {
    const broken = brokenBackends.find(({ name }) => name === "close rejects the second time");
    const tests = register({ open: broken?.open ?? manualMemoryStore });
    await expect(testNamed(tests, known).run()).rejects.toThrow("closed already");
  });

  it("prints a skip with its reason, and does not run it", async () => {
    const tests = register({ open: cannotOpen, skip: [{ reason: "has no close", cases: [known] }] });
    const { name, run } = testNamed(tests, known);
    expect(name).toBe(`${known} (skipped: has no close)`);
    await expect(run()).resolves.toEqual({ skipped: "has no close" });
  });

  it("takes no parameter, which jest and mocha would take for a callback, and needs no context", async () => {
    const bodies: [string, () => Promise<void>][] = [];
    const note = (name: string, body: () => Promise<void>): unknown => bodies.push([name, body]);
    const runner = { describe: (_name: string, body: () => void) => body(), it: note };
    const skip = [{ reason: "has no close", cases: [known] }];
    backendContract({ name: "tested", open: manualMemoryStore, skip, runner });
    expect(new Set(bodies.map(([, body]) => body.length))).toEqual(new Set([0]));
    const said = vi.spyOn(console, "info").mockReturnValue();
    for (const [name, body] of bodies) {
      if (name.startsWith(known) || name.startsWith("a store without semaphores")) await body();
    }
    expect(said.mock.calls).toEqual([
      ["skipped: a store without semaphores refuses permits: does not apply: it needs no counted"],
      [`skipped: ${known}: has no close`],
    ]);
    said.mockRestore();
  });

  it("says of a case that does not apply what it needs", async () => {
    const tests = register({ open: manualMemoryStore });
    const { skipped } = await testNamed(tests, "a store without semaphores").run();
    expect(skipped).toBe("does not apply: it needs no counted");
  });

  it("fails on a skip that names no existing case, or gives no reason", async () => {
    const tests = register({ open: manualMemoryStore, skip: [{ reason: "typo", cases: ["no such case"] }] });
    await expect(testNamed(tests, "skips name existing cases").run()).rejects.toThrow("no such case");
    expect(() => checkSkips([{ reason: " ", cases: [known] }])).toThrow("reason");
    expect(() => checkSkips([{ reason: "a reason", cases: [known] }])).not.toThrow();
  });
});
