/** The contract against backends that are broken on purpose: each is caught, and each case catches at least one. */
import { describe, expect, it } from "vitest";
import { contractCases, type Pace, runCase } from "../../src/testing/index.ts";
import { type Broken, brokenBackends, brokenBy } from "../../src/testing/broken/index.ts";
import { caughtBy } from "./caught-by.ts";

/** Fewer rounds than for a sound backend: what is broken shows soon. */
const pace: Pace = { interleavings: 15, cancellations: 60 };

/** The names of all cases that fail, each with its reason. */
async function failuresOf(broken: Broken): Promise<Map<string, unknown>> {
  const failures = new Map<string, unknown>();
  for (const each of contractCases) {
    await runCase(each, broken.open, pace).catch((error: unknown) => failures.set(each.name, error));
  }
  return failures;
}

describe("the contract", () => {
  it("is passed by the layer that breaks nothing", async () => {
    const failures = await failuresOf(brokenBy("nothing", () => () => ({})));
    expect(Object.fromEntries(failures)).toEqual({});
  }, 60_000);

  for (const broken of brokenBackends) {
    it(`catches: ${broken.name}`, async () => {
      const failures = await failuresOf(broken);
      const expected = caughtBy[broken.name] ?? [];
      expect([...failures.keys()]).toEqual(expect.arrayContaining([...expected]));
      expect(expected).not.toEqual([]);
    }, 60_000);
  }
});

describe("the table", () => {
  it("names all broken backends, and no others", () => {
    expect(Object.keys(caughtBy).toSorted()).toEqual(brokenBackends.map(({ name }) => name).toSorted());
  });

  it("names all cases, and no others: a case that catches nothing is worthless", () => {
    const named = new Set(Object.values(caughtBy).flat());
    expect(named).toEqual(new Set(contractCases.map(({ name }) => name)));
  });

  it("is about names that are unique", () => {
    expect(new Set(contractCases.map(({ name }) => name)).size).toBe(contractCases.length);
    expect(new Set(brokenBackends.map(({ name }) => name)).size).toBe(brokenBackends.length);
  });
});
