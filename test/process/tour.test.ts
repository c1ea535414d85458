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

  it("starts four processes", () => {
    const pids = steps("w\\d", "started").map(({ line }) => /process (\d+)/.exec(line)?.[1]);
    expect(new Set(pids).size).toBe(4);
  });

  it("shows ten grants with growing tokens", () => {
    const tokens = steps("w\\d", "granted").map(({ line }) => tokenIn(line));
    expect(tokens).toHaveLength(10);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(10);
  });

  it("shows a holder killed, and the next one granted before the ttl", () => {
    const killed = steps("w2", "killed")[0];
    const takeOver = steps("w3", "granted").find(({ at }) => at > (killed?.at ?? 0));
    expect(secondsIn(takeOver?.line) - secondsIn(killed?.line)).toBeLessThan(1.5);
  });

  it("shows a holder frozen, and the next one granted when the ttl has passed", () => {
    const frozen = steps("w3", "frozen")[0];
    const takeOver = steps("w4", "granted").find(({ at }) => at > (frozen?.at ?? 0));
    expect(secondsIn(takeOver?.line) - secondsIn(frozen?.line)).toBeGreaterThan(1);
    expect(steps("w3", "lost")[0]?.at).toBeGreaterThan(takeOver?.at ?? Number.POSITIVE_INFINITY);
  });

  it("shows the late write of the frozen holder refused by its token", () => {
    const refused = steps("w3", "refused");
    expect(refused).toHaveLength(1);
    const stale = steps("w3", "granted").map(({ line }) => tokenIn(line));
    expect(stale).toContain(tokenIn(refused[0]?.line));
    expect(refused[0]?.at).toBeGreaterThan(steps("w4", "wrote").at(-1)?.at ?? Number.POSITIVE_INFINITY);
  });

  it("ticks every finding, and uses no colour where nobody could see it", () => {
    expect(output.match(/^ {2}✓/gm)).toHaveLength(6);
    expect(output).not.toContain("✗");
    expect(output).not.toContain("\u001b");
  });
});

function secondsIn(line: string | undefined): number {
  return Number(/^ *([\d.]+) s/.exec(line ?? "")?.[1] ?? Number.NaN);
}

function tokenIn(line: string | undefined): bigint {
  return BigInt(/token (\d+)/.exec(line ?? "")?.[1] ?? -1);
}
