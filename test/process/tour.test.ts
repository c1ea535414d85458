/** The tour that `npm start` gives: a real process, on the built package, as a newcomer sees it. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { root } from "../house/repository.ts";

const execute = promisify(execFile);

describe("the tour", () => {
  let output = "";
  let tookMs = Number.NaN;

  // Rejects on any exit code but 0.
  beforeAll(async () => {
    const startedAt = performance.now();
    const ran = await execute(process.execPath, [join(root, "scripts", "tour.mjs")], { timeout: 15_000 });
    tookMs = performance.now() - startedAt;
    output = ran.stdout + ran.stderr;
  });

  /** What the log says of one worker and one step, in order: where it stands in the output, and the line. */
  function steps(who: string, what: string): readonly { at: number; line: string }[] {
    const matches = output.matchAll(new RegExp(`^ *[\\d.]+ s +${who} +${what} .*$`, "gm"));
    return [...matches].map((match) => ({ at: match.index, line: match[0] }));
  }

  it("ends by itself within 15 seconds", () => {
    expect(tookMs).toBeLessThan(15_000);
    expect(output).toContain("Where to go next");
  });

  it("says that all happens in one process", () => {
    expect(output).toContain("All in this one process");
  });

  it("shows eight grants with growing tokens", () => {
    const tokens = steps("w\\d", "granted").map(({ line }) => tokenIn(line));
    expect(tokens).toHaveLength(8);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(8);
  });

  it("shows the holder losing its lock before another takes over", () => {
    const lost = steps("w2", "lost");
    const takeOver = steps("w3", "granted").at(-1);
    expect(lost).toHaveLength(1);
    expect(steps("w2", "cut off")[0]?.at).toBeLessThan(lost[0]?.at ?? -1);
    expect(lost[0]?.at).toBeLessThan(takeOver?.at ?? -1);
  });

  it("shows the late write of the old holder refused by its token", () => {
    const refused = steps("w2", "refused");
    expect(refused).toHaveLength(1);
    expect(tokenIn(refused[0]?.line)).toBe(tokenIn(steps("w2", "granted")[1]?.line));
    expect(refused[0]?.at).toBeGreaterThan(steps("w3", "wrote").at(-1)?.at ?? Number.POSITIVE_INFINITY);
  });

  it("ticks every finding, and uses no colour where nobody could see it", () => {
    expect(output.match(/^ {2}✓/gm)).toHaveLength(5);
    expect(output).not.toContain("✗");
    expect(output).not.toContain("\u001b");
  });
});

function tokenIn(line: string | undefined): bigint {
  return BigInt(/token (\d+)/.exec(line ?? "")?.[1] ?? -1);
}
