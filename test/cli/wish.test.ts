/** What `run` is asked for: times are checked, and the grace fits into what there is. */
import { describe, expect, it } from "vitest";
import { parseCommandLine } from "../../src/cli/arguments.ts";
import { run } from "../../src/cli/commands/run.ts";
import { marginMs } from "../../src/core/keeper.ts";
import { type RunWish, runWish } from "../../src/cli/run/wish.ts";
import { remembering } from "./rig.ts";

function wish(...options: readonly string[]): RunWish {
  const parsed = parseCommandLine(run, ["x", ...options, "--", "true"]);
  return runWish({ command: run, ...parsed, output: remembering().output, env: {}, interactive: false });
}

it("without options is a lock of 30 seconds that is waited for for ever", () => {
  expect(wish()).toEqual({
    name: "x",
    mode: "exclusive",
    ttlMs: 30_000,
    waitMs: Number.POSITIVE_INFINITY,
    maxHoldMs: undefined,
    metadata: undefined,
    plan: { graceMs: 6_000, reserveMs: 1_000 },
  });
});

it("takes what is asked for", () => {
  const options = ["--ttl", "10s", "--wait", "0s", "--max-hold", "1h", "--shared", "--metadata", "m"];
  expect(wish(...options)).toMatchObject({
    mode: "shared",
    ttlMs: 10_000,
    waitMs: 0,
    maxHoldMs: 3_600_000,
    metadata: "m",
  });
  expect(wish("--if-available").waitMs).toBeNull();
});

describe("the plan", () => {
  it.each([
    [["--ttl", "500ms"], { graceMs: 100, reserveMs: 50 }],
    [["--ttl", "1s"], { graceMs: 200, reserveMs: 100 }],
    [["--ttl", "4s"], { graceMs: 800, reserveMs: 200 }],
    [["--ttl", "10m"], { graceMs: 10_000, reserveMs: 1_000 }],
    [["--max-hold", "100ms"], { graceMs: 20, reserveMs: 10 }],
    [["--ttl", "30s", "--max-hold", "1s"], { graceMs: 200, reserveMs: 100 }],
    [["--ttl", "30s", "--kill-grace", "15s"], { graceMs: 15_000, reserveMs: 1_000 }],
    [["--kill-grace", "0s"], { graceMs: 0, reserveMs: 1_000 }],
  ])("for %j is %j", (options, plan) => {
    expect(wish(...options).plan).toEqual(plan);
  });

  it("always leaves the time in which a lock is renewed", () => {
    for (const ttl of ["500ms", "1s", "30s", "1h"]) {
      const { ttlMs, plan } = wish("--ttl", ttl);
      const longest = wish("--ttl", ttl, "--kill-grace", `${ttlMs / 2}ms`).plan;
      for (const { graceMs, reserveMs } of [plan, longest]) {
        // A renewal is due after a third at the latest, and the core has a margin of its own.
        expect(graceMs + reserveMs + marginMs(ttlMs)).toBeLessThan((0.95 * ttlMs * 2) / 3);
      }
    }
  });
});

it.each([
  [["--ttl", "499ms"], "--ttl is"],
  [["--ttl", "5"], "--ttl is"],
  [["--wait", "soon"], "--wait is"],
  [["--max-hold", "0s"], "--max-hold is"],
  [["--kill-grace", "16s"], "more than half of the ttl of 30s"],
  [["--max-hold", "10s", "--kill-grace", "6s"], "more than half of the --max-hold of 10s"],
  [["--metadata", "m".repeat(5_000)], "metadata"],
])("%j is refused", (options, text) => {
  expect(() => wish(...options)).toThrow(text);
});
