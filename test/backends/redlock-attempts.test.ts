/** Attempts of the Redlock backend on nodes whose answers are given by hand: what is decided when, and what is sent after what. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { entry, open, proposed, said } from "../helpers/hand-node.ts";

const theirs = "somebody";

describe("an attempt", () => {
  it("is decided by the majority, whoever is slow", async () => {
    const { backend, nodes } = await open(3);
    const asked = backend.append("a", entry);
    await settle();
    expect(nodes.map((node) => node.last().command)).toEqual(["SET", "SET", "SET"]);
    nodes[0]?.last().answer(null);
    nodes[2]?.last().answer(null);
    expect(await asked).toMatchObject({ self: { id: "one" }, ahead: { count: 0 } });
  });

  it("in vain is taken back on each node that may have it before the next one is sent", async () => {
    const { backend, nodes } = await open(3);
    const [a, b, slow] = nodes;
    const first = backend.append("a", entry);
    await settle();
    // Two say no; the third has not been heard.
    for (const node of [a, b]) node?.last().answer(theirs);
    await settle();
    for (const node of [a, b]) node?.last().answer(5_000);
    expect((await first)?.ahead.count).toBe(1);
    await settle();
    expect([a?.sent.length, b?.sent.length], "nothing to take back there").toEqual([2, 2]);
    expect(slow?.last().words.slice(5), "told to let go of it").toEqual(["d", "one", "", "0"]);
    const second = backend.append("a", entry);
    await settle();
    expect(
      nodes.map((node) => node.last().command),
      "the next attempt waits",
    ).toEqual(["PTTL", "PTTL", "EVALSHA"]);
    slow?.sent[0]?.answer(null);
    slow?.last().answer(said("*"));
    await settle();
    expect(nodes.map((node) => node.last().command)).toEqual(["SET", "SET", "SET"]);
    for (const node of nodes) node.last().answer(null);
    expect((await second)?.ahead.count).toBe(0);
  });

  it("in vain is taken back after it was made on a node that is just connecting", async () => {
    const { backend, nodes } = await open(3, { lastIsReady: false });
    const [a, b, late] = nodes;
    const asked = backend.append("a", { ...entry, onlyIfGranted: true });
    await settle();
    for (const node of [a, b]) node?.last().answer(theirs);
    await settle();
    for (const node of [a, b]) node?.last().answer(5_000);
    expect(await asked).toBeNull();
    expect(late?.sent).toEqual([]);
    late?.connect();
    await settle();
    expect(late?.sent.map(({ command }) => command)).toEqual(["SET", "EVALSHA"]);
    expect(late?.last().words.slice(5)).toEqual(["d", "one", "", "0"]);
  });

  it("whose nodes answer after the deadline is refused, and what they may have is owed", async () => {
    const { backend, nodes, clock } = await open(3);
    const asked = backend.append("a", entry);
    asked.catch(() => {});
    await settle();
    nodes[0]?.last().answer(null);
    await clock.advance(1_000);
    await expect(asked).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await settle();
    expect(nodes.every((node) => node.last().words.includes("d"))).toBe(true);
  });

  it("that is agreed on when its ttl is used up is refused", async () => {
    const { backend, nodes, clock } = await open(1);
    const asked = backend.append("a", { ...entry, ttlMs: 40 });
    asked.catch(() => {});
    await settle();
    // The process stood still: no timer has fired, and the answer is there.
    clock.block(60);
    nodes[0]?.last().answer(null);
    await expect(asked).rejects.toThrow(/agreed later than the ttl of 40 ms allows/);
  });
});

describe("an attempt with a token", () => {
  it("needs one trip if a majority takes the one that is proposed", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    for (const node of nodes) expect(node.last().words[4]).toContain(`\0t${proposed}\0`);
    nodes[0]?.last().answer(said("+"));
    nodes[2]?.last().answer(said("+"));
    expect(await asked).toMatchObject({ self: { seq: BigInt(proposed) } });
    expect(nodes.map((node) => node.sent.length)).toEqual([1, 1, 1]);
  });

  it("needs another one if it was too low, and proposes more than that the next time", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    const known = proposed + 1_000_000;
    nodes[0]?.last().answer(said("+"));
    nodes[1]?.last().answer(said(`+${known}`));
    await settle();
    const stores = nodes.map((node) => node.last().words);
    expect(stores.map((words) => words.slice(4))).toEqual(stores.map(() => ["one", String(known + 1)]));
    for (const node of nodes) node.last().answer("+9999");
    expect(await asked).toMatchObject({ self: { seq: BigInt(known + 1) } });
    void backend.append("b", { ...entry, id: "two" });
    await settle();
    expect(nodes[1]?.last().words[4]).toContain(`\0t${known + 2}\0`);
  });

  it("does not count who may have forgotten a larger one, though a majority has the lock", async () => {
    const { backend, nodes } = await open(3, { fencing: true, lastUpSeconds: 1 });
    const asked = backend.append("a", entry);
    await settle();
    nodes[2]?.last().answer(said("+"));
    nodes[0]?.last().answer(said("+"));
    nodes[1]?.last().answer(said(`+${proposed}`));
    await settle();
    for (const node of nodes) expect(node.last().words.slice(4)).toEqual(["one", String(proposed + 1)]);
    for (const node of nodes) node.last().answer("+9999");
    expect(await asked).toMatchObject({ self: { seq: BigInt(proposed + 1) } });
  });

  it("frees what a slow node still had of an earlier one: it would be neither renewed nor released there", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    for (const node of nodes.slice(0, 2)) node.last().answer(said("+"));
    expect(await asked).toMatchObject({ self: { seq: BigInt(proposed) } });
    nodes[2]?.last().answer(said("=t17 5000"));
    await settle();
    expect(nodes[2]?.last().words.slice(5)).toEqual(["d", "one", "17", "0"]);
  });

  it("finds an entry that stands, and frees what it has just taken beside it", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    nodes[0]?.last().answer(said("=t17 5000"));
    nodes[1]?.last().answer(said("=t17 6000"));
    await settle();
    expect(nodes[2]?.sent[1]?.words.slice(5)).toEqual(["d", "one", String(proposed), "0"]);
    for (const node of nodes) expect(node.last().words.slice(4)).toEqual(["one", "17"]);
    nodes[0]?.last().answer("+5000");
    nodes[1]?.last().answer("+6000");
    expect(await asked).toMatchObject({ self: { seq: 17n, expiresInMs: 4_999 } });
  });

  it("believes no longer than those do that count", async () => {
    const { backend, nodes } = await open(3, { fencing: true, lastUpSeconds: 1 });
    const asked = backend.append("a", entry);
    await settle();
    nodes[2]?.last().answer(said("+"));
    nodes[0]?.last().answer(said("=t17 5000"));
    nodes[1]?.last().answer(said("=t17 6000"));
    await settle();
    nodes[2]?.last().answer("+10000");
    nodes[0]?.last().answer("+5000");
    nodes[1]?.last().answer("+6000");
    expect(await asked).toMatchObject({ self: { expiresInMs: 4_999 } });
  });
});
