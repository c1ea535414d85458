/** What the doctor sees in any store, by its traits, and how it says it. */
import { expect, it } from "vitest";
import { findingLines, generalFindings } from "../../src/cli/commands/doctor.ts";
import type { Backend, Traits } from "../../src/core/backend.ts";
import { memory, remembering } from "./rig.ts";

/** A store in memory that says of itself what the test wants. */
async function storeWith(traits: Partial<Traits>): Promise<Backend> {
  const backend = await memory("doctor");
  return new Proxy(backend, {
    get: (target, key): unknown => {
      if (key === "traits") return { ...target.traits, ...traits };
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const levels = async (traits: Partial<Traits>): Promise<readonly string[]> =>
  (await generalFindings(await storeWith(traits))).map(({ level, about }) => `${level} ${about}`);

it("a store of a machine or a network that breaks at nothing is well", async () => {
  expect(await levels({ scope: "machine" })).toEqual(["ok answers", "ok reach"]);
  expect(await levels({ scope: "network" })).toEqual(["ok answers", "ok reach"]);
});

it("a store of a process is a problem", async () => {
  expect(await levels({ scope: "process" })).toEqual(["ok answers", "problem reach"]);
});

it("faults that break exclusion, and locks without tokens, are warnings with something to do", async () => {
  const traits = { scope: "network", exclusivityBrokenBy: ["fail-over"], tokens: null } as const;
  const findings = await generalFindings(await storeWith(traits));
  const warnings = findings.filter(({ level }) => level === "warning");
  expect(warnings.map(({ about }) => about)).toEqual(["faults", "tokens"]);
  expect(warnings.every(({ todo }) => todo !== undefined)).toBe(true);
  expect(warnings[0]?.seen).toContain("fail-over");
});

it("a finding is a line, and one more for what to do", () => {
  const { output } = remembering();
  expect(findingLines({ level: "ok", about: "a", seen: "b" }, output)).toEqual(["ok       a: b"]);
  const problem = { level: "problem", about: "a", seen: "\u001b[2J", todo: "c" } as const;
  expect(findingLines(problem, output)).toEqual(["problem  a: \\x1b[2J", "         to do: c"]);
});
