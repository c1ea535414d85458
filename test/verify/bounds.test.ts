/** The bounds behind the counts of the evidence: exact, and rounded so that none is lower than it is. */
import { expect, it } from "vitest";
import { withBound } from "../../scripts/experiments/bounds.mjs";

/** The chance of at most k of n, by the plain sum. */
function atMost(k: number, n: number, p: number): number {
  let sum = 0;
  for (let i = 0; i <= k; i += 1) {
    let term = 1;
    for (let j = 1; j <= i; j += 1) term *= ((n - i + j) / j) * p;
    sum += term * (1 - p) ** (n - i);
  }
  return sum;
}

it("say a rate with which so few would be seen in at most one of twenty runs, and hardly a higher one", () => {
  for (const n of [20, 60, 200, 226, 1_000]) {
    for (const k of [0, 1, 2, 5, 9, 40, 100, 195].filter((each) => each < n && each < 200)) {
      const [, shown = "100"] = /^\d+ \(< ([\d.]+) %\)$/.exec(withBound(k, n)) ?? [];
      const digit = 10 ** -(shown.split(".")[1]?.length ?? 0);
      const rate = (percent: number): number => Math.min(1, percent / 100);
      expect(atMost(k, n, rate(Number(shown))), `${k} of ${n}: ${shown}`).toBeLessThanOrEqual(0.05);
      expect(atMost(k, n, rate(Number(shown) - digit)), `${k} of ${n}: ${shown}`).toBeGreaterThan(0.05);
    }
  }
});

it("are the rule of three for none, and 100 % for all", () => {
  expect(withBound(0, 200)).toBe("0 (< 1.5 %)");
  expect(withBound(0, 1_000)).toBe("0 (< 0.30 %)");
  expect(withBound(200, 200)).toBe("200 (≤ 100 %)");
});
