/** The arithmetic of majorities of the Redlock backend: every split of up to six nodes, in every order of up to four. */
import { describe, expect, it } from "vitest";
import { lifeOf, quorumOf, Tally, type Verdict, type Vote } from "../../src/backends/redlock/quorum.ts";

const sizes = [1, 2, 3, 4, 5, 6];
const kinds: readonly (Vote | undefined)[] = ["yes", "no", "void", undefined];

/** All lists of so many votes; undefined stands for a node that has not voted. */
function* splits(nodes: number): Generator<readonly (Vote | undefined)[]> {
  if (nodes === 0) yield [];
  else for (const rest of splits(nodes - 1)) for (const vote of kinds) yield [...rest, vote];
}

function* orders<T>(items: readonly T[]): Generator<readonly T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries())
    for (const rest of orders(items.toSpliced(index, 1))) yield [item, ...rest];
}

/** What a verdict means, by trying all that may still come. */
function verdictBySearch(votes: readonly (Vote | undefined)[]): Verdict {
  const yes = votes.filter((vote) => vote === "yes").length;
  const open = votes.filter((vote) => vote === undefined).length;
  const majority = (count: number): boolean => count > votes.length / 2;
  const futures = Array.from({ length: open + 1 }, (_, more) => majority(yes + more));
  if (futures[0]) return "reached";
  return futures.some(Boolean) ? "open" : "impossible";
}

function tallied(votes: readonly (Vote | undefined)[]): Tally {
  const tally = new Tally(votes.length);
  votes.forEach((vote, node) => vote !== undefined && tally.count(node, vote));
  return tally;
}

/** How a vote has ended; nothing while it has not. */
function ending(votes: readonly (Vote | undefined)[]): readonly string[] {
  const { verdict, refused, unable } = tallied(votes);
  return Object.entries({ reached: verdict === "reached", refused, unable }).flatMap(([name, isSo]) =>
    isSo ? [name] : [],
  );
}

describe.each(sizes)("of %i nodes", (nodes) => {
  const quorum = quorumOf(nodes);

  it("two majorities share a node, and one less than a majority need not", () => {
    expect(2 * quorum).toBeGreaterThan(nodes);
    expect(2 * (quorum - 1)).toBeLessThanOrEqual(nodes);
  });

  it("every split has the verdict that all its futures have", () => {
    for (const votes of splits(nodes)) expect(tallied(votes).verdict).toBe(verdictBySearch(votes));
  });

  it("once all have voted, nothing is open: even 1–1, 2–2 and 3–3 are settled", () => {
    for (const votes of splits(nodes)) {
      if (!votes.includes(undefined)) expect(tallied(votes).verdict).not.toBe("open");
    }
  });

  it("two who ask for the same are never both given it", () => {
    for (const votes of splits(nodes)) {
      const other = votes.map((vote) => (vote === "yes" ? "no" : "yes") satisfies Vote);
      const both = tallied(votes).verdict === "reached" && tallied(other).verdict === "reached";
      expect(both).toBe(false);
    }
  });

  it("a majority that surely does not agree would not do so whatever the void votes were", () => {
    for (const votes of splits(nodes)) {
      const best = votes.map((vote) => (vote === "no" ? "no" : "yes") satisfies Vote);
      expect(tallied(votes).surelyNot).toBe(tallied(best).verdict !== "reached");
    }
  });

  it("it is unable when the nodes that are left are no majority", () => {
    for (const votes of splits(nodes)) {
      const left = votes.filter((vote) => vote !== "void").length;
      expect(tallied(votes).unable).toBe(left < quorum);
    }
  });

  it("how it ends depends on the votes, and not on their order: reached, refused by a majority that has voted, or unable", () => {
    for (const votes of splits(nodes)) {
      const whole = ending(votes.map((vote) => vote ?? "void"));
      expect(whole).toHaveLength(1);
      const now = ending(votes);
      if (now.length === 0) continue;
      for (const open of ["yes", "no", "void"] satisfies Vote[])
        expect(ending(votes.map((vote) => vote ?? open))).toEqual(now);
    }
  });

  it("the life of a majority is the longest time at which a majority still lives", () => {
    for (let held = 0; held <= nodes; held++) {
      const lives = Array.from({ length: held }, (_, index) => 10 * ((index * 7) % nodes) + 5);
      const alive = (at: number): number => lives.filter((life) => life >= at).length;
      const life = lifeOf(lives, quorum);
      if (held < quorum) expect(life).toBe(0);
      else expect([alive(life) >= quorum, alive(life + 1) >= quorum]).toEqual([true, false]);
    }
  });
});

it.each([1, 2, 3, 4])("a decision is never taken back, in any order of %i votes", (nodes) => {
  for (const votes of splits(nodes)) {
    const cast = votes.flatMap((vote, node) => (vote === undefined ? [] : [{ node, vote }]));
    for (const order of orders(cast)) {
      const tally = new Tally(nodes);
      const seen = order.map(({ node, vote }) => tally.count(node, vote));
      const first = seen.find((verdict) => verdict !== "open");
      const since = seen.slice(seen.findIndex((verdict) => verdict !== "open"));
      if (first !== undefined) expect(new Set(since)).toEqual(new Set([first]));
    }
  }
});

it("a second vote of a node changes nothing", () => {
  const tally = new Tally(3);
  tally.count(0, "no");
  tally.count(0, "yes");
  tally.count(0, "yes");
  expect([tally.yes, tally.no, tally.void, tally.open]).toEqual([0, 1, 0, 2]);
});
