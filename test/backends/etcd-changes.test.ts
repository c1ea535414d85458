/** Which changes of etcd may travel together. */
import { describe, expect, it } from "vitest";
import { batchesOf, type Change } from "../../src/backends/etcd/changes.ts";

const join = (queue: string, id: string): Change => change(`${queue}/${id}`, queue);
const leave = (queue: string, id: string): Change => change(`${queue}/${id}`, null);

function change(key: string, joins: string | null): Change {
  return { what: "a change", key, joins, request: {} };
}

const keysOf = (changes: readonly Change[]): string[][] =>
  batchesOf(changes).map((batch) => batch.map(({ key }) => key));

describe("changes of one tick", () => {
  it("one alone stays alone", () => {
    expect(keysOf([join("a", "1")])).toEqual([["a/1"]]);
  });

  it("entries of different queues travel together", () => {
    expect(keysOf([join("a", "1"), join("b", "2")])).toEqual([["a/1", "b/2"]]);
  });

  it("entries that join one queue do not: they would have the same create revision", () => {
    expect(keysOf([join("a", "1"), join("b", "2"), join("a", "3"), join("a", "4")])).toEqual([
      ["a/1", "b/2"],
      ["a/3"],
      ["a/4"],
    ]);
  });

  it("who leaves goes first, so that who joins does not see it", () => {
    expect(keysOf([join("a", "2"), leave("a", "1"), leave("a", "0")])).toEqual([["a/1", "a/0", "a/2"]]);
  });

  it("a key is written once: a transaction that writes it twice is refused", () => {
    expect(keysOf([leave("a", "1"), join("a", "1"), join("b", "1")])).toEqual([["a/1", "b/1"], ["a/1"]]);
  });

  it("there are not more than etcd takes in one transaction", () => {
    const many = Array.from({ length: 150 }, (_, turn) => join(`q${turn}`, "1"));
    expect(batchesOf(many).map(({ length }) => length)).toEqual([64, 64, 22]);
  });
});
