/** The order in which the entries of one client join a queue again, without a server: what was under way when they were told. */
import { expect, it } from "vitest";
import { Lines } from "../../src/backends/etcd/lines.ts";
import { settle } from "../../src/testing/manual-clock.ts";

it("whoever is told that it is gone waits for those ahead who still look", async () => {
  const lines = new Lines();
  const joined: number[] = [];
  const looked = lines.looks("q", 7n);
  void lines.rejoins("q", 9n, () => joined.push(9));
  // Those behind, and those of another queue, do not matter.
  lines.looks("q", 10n);
  lines.looks("other", 1n);
  await settle();
  expect(joined).toEqual([]);
  looked();
  await expect.poll(() => joined).toEqual([9]);
});

it("one that was told while it looked, and was found all the same, hears of it again and goes first", async () => {
  const lines = new Lines();
  const joined: number[] = [];
  const looked = lines.looks("q", 7n);
  // What is told while it is asked about is not heard.
  void lines.rejoins("q", 7n, () => {});
  void lines.rejoins("q", 8n, () => joined.push(8));
  await settle();
  const heardAgain = Promise.resolve()
    .then(() => looked())
    .then(() => {})
    .then(() => {})
    .then(() => lines.rejoins("q", 7n, () => joined.push(7)));
  await heardAgain;
  await settle();
  expect(joined).toEqual([7, 8]);
});

it("those who are told one after the other join in their order, whoever is told first", async () => {
  const lines = new Lines();
  const joined: bigint[] = [];
  const told = [5n, 3n, 4n, 1n, 2n].map((seq) => lines.rejoins("q", seq, () => joined.push(seq)));
  await Promise.all(told);
  expect(joined).toEqual([1n, 2n, 3n, 4n, 5n]);
});
