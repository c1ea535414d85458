/** When those who wait on Redlock ask again, by a manual clock. */
import { expect, it } from "vitest";
import { Hints } from "../../src/backends/redlock/hints.ts";
import { Waiters } from "../../src/backends/redlock/waiters.ts";
import { ManualClock } from "../../src/testing/index.ts";

const holder = {
  held: {
    id: "first",
    seq: 1n,
    owner: { client: "c", host: "h", pid: 1 },
    sinceMs: null,
    metadata: undefined,
  },
  leftMs: 30_000,
};

it.each([
  { told: "first", most: 2, why: "a release is told before all nodes have it: it is asked again at once" },
  {
    told: "another",
    most: 250,
    why: "somebody else has left, and the same holder is there: it looks as seldom as before",
  },
])("$why", async ({ told, most }) => {
  const clock = new ManualClock();
  const random = (): number => 0.5;
  const hints = new Hints([], clock, random, { hint: () => {}, stands: () => {} });
  const waiters = new Waiters(clock, random, hints);
  waiters.join("a", "second");
  for (let look = 0; look < 6; look++) waiters.busy("second", holder);
  waiters.hint("a", told);
  waiters.asks("second");
  waiters.busy("second", holder);
  let asked = false;
  waiters.watch("second", () => (asked = true));
  await clock.advance(most / 2);
  expect(asked).toBe(false);
  await clock.advance(most / 2);
  expect(asked).toBe(true);
});
