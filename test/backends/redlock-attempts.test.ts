/** Attempts of the Redlock backend on nodes whose answers are given by hand: what is decided when, and what is sent after what. */
import { describe, expect, it } from "vitest";
import type { NewEntry } from "../../src/core/backend.ts";
import { RedlockBackend } from "../../src/backends/redlock/backend.ts";
import type { Link } from "../../src/backends/redis/link.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";

/** A command that a node was sent, and how to answer it. */
interface Sent {
  readonly command: string;
  readonly words: readonly string[];
  answer(reply: unknown): void;
}

/** A node that answers nothing by itself but who it is. */
class HandNode implements Link {
  readonly library = "ioredis";
  readonly cluster = false;
  readonly inOrder = true;
  readonly isReady = true;
  readonly lastError = null;
  readonly sent: Sent[] = [];

  canSend(): boolean {
    return true;
  }
  start(onReady: () => void): void {
    onReady();
  }
  send(command: string, words: readonly string[]): Promise<unknown> {
    if (command === "INFO") return Promise.resolve("run_id:abc\r\nuptime_in_seconds:1000\r\n");
    if (command === "SCRIPT") return Promise.resolve("");
    return new Promise((resolve) => {
      this.sent.push({ command, words, answer: resolve });
    });
  }
  sendToAll(): Promise<readonly unknown[]> {
    return Promise.resolve([]);
  }
  sendTo(): Promise<unknown> {
    return Promise.resolve(null);
  }
  nodeOf(): undefined {
    return undefined;
  }
  listen(): never {
    throw new Error("nobody can listen here");
  }
  reconnect(): void {}
  async close(): Promise<void> {}

  /** The last command that it was sent. */
  last(): Sent {
    const last = this.sent.at(-1);
    if (last === undefined) throw new Error("nothing was sent");
    return last;
  }
}

const entry: NewEntry = {
  id: "one",
  owner: { client: "c", host: "h", pid: 1 },
  mode: "write",
  weight: 1,
  ttlMs: 10_000,
};

/** A backend without tokens on so many nodes: its attempts are plain SETs. */
async function open(count: number) {
  const nodes = Array.from({ length: count }, () => new HandNode());
  const places = nodes.map((link, index) => ({ label: `node ${index}`, link }));
  const clock = new ManualClock();
  const settings = { prefix: "lock:", deadlineMs: 1_000, quarantineMs: 0, fencing: false, clock };
  const backend = new RedlockBackend(places, settings);
  await backend.ready();
  return { backend, nodes, clock };
}

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
    expect(slow?.last().words.slice(4), "told to let go of it").toEqual([
      expect.any(String),
      "d",
      "one",
      "",
      "0",
    ]);
    const second = backend.append("a", entry);
    await settle();
    expect(
      nodes.map((node) => node.last().command),
      "the next attempt waits",
    ).toEqual(["PTTL", "PTTL", "EVALSHA"]);
    slow?.sent[0]?.answer(null);
    slow?.last().answer(["1794800000000000", 1]);
    await settle();
    expect(nodes.map((node) => node.last().command)).toEqual(["SET", "SET", "SET"]);
    for (const node of nodes) node.last().answer(null);
    expect((await second)?.ahead.count).toBe(0);
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
