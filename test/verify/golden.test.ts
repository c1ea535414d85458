/** The golden histories: the checker refuses each bad one for exactly what its name says, and accepts each good one. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkText, INVARIANTS } from "../../src/verify/checker.ts";
import { claimedBy } from "./claimed.ts";

const folder = new URL("../histories/", import.meta.url);
const names = readdirSync(folder).toSorted();

const judge = (name: string) =>
  checkText(readFileSync(new URL(name, folder), "utf8"), { waitMs: 1000, invariants: claimedBy(name) });

describe("golden histories", () => {
  it.each(names.filter((name) => name.endsWith(".bad.json")))("%s is refused", (name) => {
    const { verdict, violations } = judge(name);
    expect(violations.map(({ invariant }) => invariant)).toEqual([name.slice(0, 2)]);
    expect(verdict).toBe("invalid");
    const [violation] = violations;
    expect(violation?.events.length).toBeGreaterThan(0);
    expect(violation?.events.length).toBeLessThanOrEqual(5);
    expect(violation?.message).toMatch(/^.{20,200}\.$/);
  });

  it.each(names.filter((name) => name.endsWith(".ok.json")))("%s is accepted", (name) => {
    expect(judge(name)).toMatchObject({ verdict: "valid", violations: [], doubts: [] });
  });

  it.each(INVARIANTS)("%s has a bad history and a good one", (invariant) => {
    const own = names.filter((name) => name.startsWith(invariant));
    expect(own.some((name) => name.endsWith(".bad.json"))).toBe(true);
    expect(own.some((name) => name.endsWith(".ok.json"))).toBe(true);
  });

  it("has no file that is neither", () => {
    expect(names.filter((name) => !/^[MFLA]\d-[a-z0-9-]+\.(ok|bad)\.json$/.test(name))).toEqual([]);
  });
});
