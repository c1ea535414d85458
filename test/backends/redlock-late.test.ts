/** What the Redlock backend makes of answers that come late, of leftovers of its own, and of numbers that went astray; answers are given by hand. */
import { describe, expect, it } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { entry, type HandNode, open, proposed, said } from "../helpers/hand-node.ts";

/** The removals that a node was sent: whose, and with which number. */
function removals(node: HandNode | undefined): readonly (readonly string[])[] {
  return (node?.sent ?? []).filter(({ words }) => words[5] === "d").map(({ words }) => words.slice(6, 8));
}

describe("an answer that comes after the decision", () => {
  it("does not lengthen belief: the first phase has no part in how long those last that stored the token", async () => {
    const { backend, nodes } = await open(5, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    const [a, b, c, d, e] = nodes;
    a?.last().answer(said("=c17 50"));
    for (const node of [b, c]) node?.last().answer(said(`+${proposed}`));
    await settle();
    for (const node of [d, e]) node?.sent[0]?.answer(said("+"));
    await settle();
    a?.last().answer("+50");
    for (const node of [d, e]) node?.last().answer("+9990");
    expect(await asked).toMatchObject({ self: { expiresInMs: 49 } });
  });

  it("that finds the very entry that was found takes nothing out", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    for (const node of nodes.slice(0, 2)) node.last().answer(said("=t17 5000"));
    await settle();
    for (const node of nodes.slice(0, 2)) node.last().answer("+5000");
    expect(await asked).toMatchObject({ self: { seq: 17n } });
    nodes[2]?.sent[0]?.answer(said("=t17 5000"));
    await settle();
    expect(removals(nodes[2])).toEqual([["one", String(proposed)]]);
  });

  it("leaves a node alone that has only noted a number above the token: it is renewed and released there all the same", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const [a, b, later] = nodes;
    const asked = backend.append("a", entry);
    await settle();
    const low = proposed - 2_000_000;
    for (const node of [a, b]) node?.last().answer(said(`+${low}`));
    await settle();
    later?.sent[0]?.answer(said(`+${low + 500}`));
    later?.last().answer(`=c${low + 500}`);
    await settle();
    for (const node of [a, b]) node?.last().answer("+9999");
    expect(await asked).toMatchObject({ self: { seq: BigInt(low + 1) } });
    await settle();
    expect(removals(later)).toEqual([]);
  });

  it("leaves a node alone that had noted a number for an earlier attempt, and is heard after the grant", async () => {
    const { backend, nodes } = await open(3, { fencing: true });
    const [a, b, later] = nodes;
    const asked = backend.append("a", entry);
    await settle();
    for (const node of [a, b]) node?.last().answer(said("+"));
    expect(await asked).toMatchObject({ self: { seq: BigInt(proposed) } });
    later?.sent[0]?.answer(said("=c17 5000"));
    await settle();
    expect(removals(later)).toEqual([]);
  });

  it.each(["before", "after"])(
    "frees a node whose number is above the token, heard %s the others: it would be neither renewed nor released there",
    async (when) => {
      const { backend, nodes } = await open(3, { fencing: true });
      const [a, b, ahead] = nodes;
      const asked = backend.append("a", entry);
      await settle();
      // For two of them the proposal is too far ahead; the clock of the third is, too, and it has stored it.
      const low = proposed - 2_000_000;
      for (const node of [a, b]) node?.last().answer(said(`+${low}`));
      await settle();
      ahead?.sent[0]?.answer(said("+"));
      const knowsMore = (): void => ahead?.last().answer(`=t${proposed}`);
      if (when === "before") knowsMore();
      await settle();
      for (const node of [a, b]) node?.last().answer("+9999");
      expect(await asked).toMatchObject({ self: { seq: BigInt(low + 1) } });
      if (when === "after") knowsMore();
      await settle();
      expect(removals(ahead)).toEqual([["one", String(proposed)]]);
    },
  );
});

it("whoever does not want to wait is refused as soon as a majority has answered, and all of them name one holder", async () => {
  const { backend, nodes } = await open(5);
  const asked = backend.append("a", { ...entry, onlyIfGranted: true });
  let outcome: unknown = "none yet";
  void asked.then((answer) => (outcome = answer));
  await settle();
  // The last one stands still.
  const [down, a, b, c] = nodes;
  down?.last().fail(new Error("Connection is closed."));
  for (const node of [a, b, c]) node?.last().answer("somebody");
  await settle();
  for (const node of [a, b, c]) node?.last().answer(5_000);
  await settle();
  expect(outcome).toBeNull();
});

it.each([
  { count: 2, order: "01" },
  { count: 2, order: "10" },
  { count: 3, order: "012" },
  { count: 3, order: "120" },
  { count: 3, order: "102" },
])(
  "of $count nodes, one names a holder and the others are down, heard in the order $order: that is broken, not busy",
  async ({ count, order }) => {
    const { backend, nodes } = await open(count);
    const asked = backend.append("a", { ...entry, onlyIfGranted: true });
    const isBroken = expect(asked).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await settle();
    for (const index of order) {
      const node = nodes[Number(index)];
      if (index === "0") {
        node?.last().answer("somebody");
        await settle();
        node?.last().answer(5_000);
      } else node?.last().fail(new Error("Connection is closed."));
      await settle();
    }
    await isBroken;
  },
);

describe("what an attempt in vain left on a node", () => {
  it("is not taken out any more once the next attempt was sent: the node may have voted for that", async () => {
    const { backend, nodes, clock } = await open(3);
    const [a, b, frozen] = nodes;
    const first = backend.append("a", entry);
    await settle();
    for (const node of [a, b]) node?.last().answer("somebody");
    await settle();
    for (const node of [a, b]) node?.last().answer(5_000);
    expect((await first)?.ahead.count).toBe(1);
    const second = backend.append("a", entry);
    await clock.advance(1_000);
    expect(frozen?.sent.map(({ command }) => command)).toEqual(["SET", "EVALSHA", "SET"]);
    // It goes on: the removal is too late by its clock, and the second attempt finds what the first one took.
    frozen?.sent[0]?.answer(null);
    frozen?.sent[1]?.answer(said("!LATE"));
    await settle();
    expect(removals(frozen).length, "it is not sent again").toBe(1);
    frozen?.sent[2]?.answer(null);
    a?.last().answer(null);
    expect((await second)?.ahead.count).toBe(0);
    expect(removals(frozen).length).toBe(1);
  });

  it("of which nobody was told in time is waited for, too, after an error", async () => {
    const { backend, nodes, clock } = await open(3);
    const first = backend.append("a", entry);
    first.catch(() => {});
    await settle();
    await clock.advance(1_000);
    await expect(first).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    void backend.append("a", entry);
    await settle();
    expect(nodes.map((node) => node.sent.length)).toEqual([2, 2, 2]);
    for (const node of nodes) node.last().answer(said("*"));
    await settle();
    expect(nodes.map((node) => node.last().command)).toEqual(["SET", "SET", "SET"]);
  });
});

describe("an entry of an earlier attempt", () => {
  it("on a node that does not count is not taken for one that stands", async () => {
    const { backend, nodes } = await open(3, { fencing: true, lastUpSeconds: 1 });
    const [a, b, restarted] = nodes;
    const asked = backend.append("a", entry);
    await settle();
    restarted?.last().answer(said("=t17 5000"));
    a?.last().answer(said("=t17 5000"));
    b?.last().answer(said("+"));
    await settle();
    expect(removals(b), "it has just voted for us").toEqual([]);
    for (const node of [a, b]) node?.last().answer("+9999");
    expect(await asked).toMatchObject({ self: { seq: BigInt(proposed + 1) } });
  });

  it("that has just expired lasts no longer", async () => {
    const { backend, nodes } = await open(1);
    const asked = backend.append("a", entry);
    await settle();
    nodes[0]?.last().answer("somebody");
    await settle();
    nodes[0]?.last().answer(-2);
    expect(await asked).toMatchObject({ ahead: { nearest: { expiresInMs: 0 } } });
  });
});

describe("a node that has missed an extension", () => {
  /** A lock that is held on three nodes, of which two have just extended it, or one. */
  async function extending(extended: number) {
    const { backend, nodes } = await open(3, { fencing: true });
    const asked = backend.append("a", entry);
    await settle();
    for (const node of nodes) node.last().answer(said("+"));
    const seq = (await asked)?.self.seq ?? 0n;
    const renewed = backend.renew([{ queue: "a", id: entry.id, seq, ttlMs: 10_000 }]);
    await settle();
    for (const node of nodes.slice(0, extended)) node.last().answer(said("+10000"));
    await settle();
    return { backend, nodes, seq, renewed };
  }

  const repairs = (node: HandNode | undefined): number =>
    (node?.sent ?? []).filter(({ words }) => words[5] === "f").length;

  it("gets it again when a majority has extended it, and not before", async () => {
    const { nodes, renewed } = await extending(1);
    nodes[2]?.last().answer(said("0"));
    await settle();
    expect(repairs(nodes[2]), "one of three is no majority").toBe(0);
    nodes[1]?.last().answer(said("+10000"));
    expect(await renewed).toEqual([{ outcome: "renewed", expiresInMs: 9_999 }]);
    await settle();
    expect(nodes.map(repairs)).toEqual([0, 0, 1]);
  });

  it("does not get it if no majority has extended it", async () => {
    const { nodes, renewed } = await extending(1);
    for (const node of nodes.slice(1)) node.last().answer(said("0"));
    expect(await renewed).toEqual([{ outcome: "gone" }]);
    await settle();
    expect(nodes.map(repairs)).toEqual([0, 0, 0]);
  });

  it("does not get it after it was released: nobody would free it there", async () => {
    const { backend, nodes, renewed, seq } = await extending(2);
    expect(await renewed).toMatchObject([{ outcome: "renewed" }]);
    void backend.remove("a", entry.id, false, seq);
    await settle();
    nodes[2]?.sent[1]?.answer(said("0"));
    await settle();
    expect(repairs(nodes[2])).toBe(0);
  });
});

it("a node that has forgotten the scripts gets them again, once, and then what it missed, in order", async () => {
  const { backend, nodes } = await open(1, { fencing: true });
  const [node] = nodes;
  const loads = node?.loads ?? 0;
  const asked = [backend.append("a", entry), backend.append("b", { ...entry, id: "two" })];
  await settle();
  asked.push(backend.append("c", { ...entry, id: "three" }));
  await settle();
  expect(node?.sent.map(({ command }) => command)).toEqual(["EVALSHA", "EVALSHA"]);
  for (const { fail } of node?.sent.slice() ?? []) fail(new Error("NOSCRIPT No matching script."));
  await settle();
  expect(node?.loads).toBe(2 * loads);
  expect(node?.sent.slice(2).map(({ command, words }) => [command, words[1]])).toEqual([
    ["EVAL", "3"],
    ["EVAL", "2"],
  ]);
  for (const { answer } of node?.sent.slice(2) ?? []) answer(said("*"));
  expect((await Promise.all(asked)).map((snapshot) => snapshot?.self.id)).toEqual(["one", "two", "three"]);
});
