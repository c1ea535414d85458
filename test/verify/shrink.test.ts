/** Shrinking keeps a history failing while it gets smaller. */
import { describe, expect, it } from "vitest";
import { checkHistory } from "../../src/verify/checker.ts";
import type { HistoryEvent } from "../../src/verify/history.ts";
import { shrink, shrinkHistory } from "../../src/verify/shrink.ts";
import { generateHistory } from "./generate.ts";
import { mutations } from "./mutations.ts";
import { seeded } from "./random.ts";

describe("shrink", () => {
  const items = [...Array(1000).keys()];

  it("keeps what the failure needs and drops the rest", async () => {
    const needed = [3, 500, 501, 998];
    let calls = 0;
    const left = await shrink(
      items,
      (kept) => {
        calls += 1;
        return needed.every((item) => kept.includes(item));
      },
      [String],
    );
    expect(left).toEqual(needed);
    expect(calls).toBeLessThan(150);
  });

  it("drops whole groups, by one grouping after the other", async () => {
    const seen: number[] = [];
    const left = await shrink(
      items,
      (kept) => {
        seen.push(kept.length);
        return kept.includes(123);
      },
      [(item) => `hundred ${Math.floor(item / 100)}`, (item) => `ten ${Math.floor(item / 10)}`],
    );
    expect(left).toEqual([120, 121, 122, 123, 124, 125, 126, 127, 128, 129]);
    expect(seen).toContain(100);
  });

  it("keeps items that belong to no group", async () => {
    const left = await shrink([1, 2, 3, 4], () => true, [(item) => (item === 2 ? null : "rest")]);
    expect(left).toEqual([2]);
  });

  it("goes on when dropping one group makes room to drop another", async () => {
    const left = await shrink(
      ["a", "b", "x"],
      (kept) => kept.includes("x") && (kept.includes("b") || !kept.includes("a")),
      [(item) => item],
    );
    expect(left).toEqual(["x"]);
  });

  it("waits for a predicate that takes its time", async () => {
    expect(await shrink(items, async (kept) => Promise.resolve(kept.includes(7)), [String])).toEqual([7]);
  });
});

describe("shrinkHistory", () => {
  it.each(mutations.filter(({ breaks }) => breaks === "M1" || breaks === "F1" || breaks === "M2"))(
    "$breaks: $name becomes a handful of events",
    async ({ breaks, apply }) => {
      const fails = (events: readonly HistoryEvent[]): boolean =>
        checkHistory(events).violations.some(({ invariant }) => invariant === breaks);
      const broken = apply(generateHistory(11, { requests: 60 }), seeded(1));
      expect(broken).not.toBeNull();
      const left = await shrinkHistory(broken ?? [], fails);
      expect(fails(left)).toBe(true);
      // Two requests, each asked for and granted, and the end.
      expect(left.length).toBeLessThanOrEqual(5);
      expect(left.map(({ i }) => i)).toEqual([...left.keys()]);
    },
  );
});
