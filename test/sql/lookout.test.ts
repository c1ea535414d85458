/** Who waits on a SQL database without being told by it: in which order waiters hear that somebody has taken them out. */
import { expect, it, onTestFinished } from "vitest";
import type { Entry } from "../../src/core/backend.ts";
import { Lookout } from "../../src/sql/lookout.ts";
import type { Place } from "../../src/sql/wire.ts";

const owner = { client: "c", host: "h", pid: 1 };
const holder = ["h", true, 1, null, "1", 9e6, 0, JSON.stringify(owner)] as const;

function waiter(seq: number): Entry {
  return { id: `w${seq}`, owner, mode: "write", weight: 1, seq: BigInt(seq), expiresInMs: 9_000, ageMs: 0 };
}

/** Behind the holder, and those before. */
function placeOf(seq: bigint): Place {
  return [String(seq), 9e6, 0, Number(seq) - 1, Number(seq) - 1, holder, true, "1"];
}

it("those who were taken out together hear of it in their order, though a later one looked first", async () => {
  const told: string[] = [];
  let taken = false;
  const lookout = new Lookout(async (_queue, seq) => {
    // The looks of the second waiter were on their way before anything happened, but for the one that follows the third one's.
    const before = taken;
    if (seq === 3n) taken = true;
    return before || seq === 3n ? null : placeOf(seq);
  });
  onTestFinished(() => lookout.close());
  for (const seq of [2, 3]) {
    const self = waiter(seq);
    lookout.watch(
      "a",
      self,
      (fresh) => void told.push(`${self.id} ${fresh === undefined ? "gone" : "there"}`),
    );
  }
  await expect.poll(() => told.length).toBe(2);
  expect(told).toEqual(["w2 gone", "w3 gone"]);
});

it("whoever is taken out alone is told alone", async () => {
  const told: string[] = [];
  const lookout = new Lookout(async (_queue, seq) => (seq === 3n ? null : placeOf(seq)));
  onTestFinished(() => lookout.close());
  for (const seq of [2, 3, 4]) {
    const self = waiter(seq);
    lookout.watch("a", self, () => void told.push(self.id));
  }
  await expect.poll(() => told).toEqual(["w3"]);
});
