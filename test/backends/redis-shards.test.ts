/** Who listens for wake-ups, without a server: when channels are asked for and given up, and who looks for messages that may be lost. */
import { describe, expect, it } from "vitest";
import { Hub } from "../../src/backends/redis/hub.ts";
import { slotOf, tagOfSlot } from "../../src/backends/redis/keys.ts";
import type { Link, Listener, Listening } from "../../src/backends/redis/link.ts";
import { Shards } from "../../src/backends/redis/shards.ts";
import type { Entry, Snapshot } from "../../src/core/backend.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";

/** A connection that keeps what is asked of it. */
interface Heard {
  readonly node: string;
  readonly listener: Listener;
  readonly asked: string[];
  open: boolean;
}

/** A cluster of two nodes: slots below 8192 are on a, the rest on b, until they move. */
class HandCluster implements Link {
  readonly library = "ioredis";
  readonly cluster = true;
  readonly inOrder = false;
  readonly isReady = true;
  readonly lastError = null;
  readonly moved = new Map<number, string>();
  readonly connections: Heard[] = [];
  refuses = false;
  answer: (channel: string) => Promise<void> = async () => {};

  canSend(): boolean {
    return true;
  }
  start(): void {}
  send(): Promise<unknown> {
    return Promise.resolve(1);
  }
  sendToAll(): Promise<readonly unknown[]> {
    return Promise.resolve([]);
  }
  sendTo(): Promise<unknown> {
    return Promise.resolve(null);
  }
  nodeOf(slot: number): string {
    return this.moved.get(slot) ?? (slot < 8_192 ? "a" : "b");
  }
  listen(listener: Listener, slot = 0): Listening {
    if (this.refuses) throw new Error("no node is known");
    const heard: Heard = { node: this.nodeOf(slot), listener, asked: [], open: true };
    this.connections.push(heard);
    const ask = async (what: string, channel: string): Promise<void> => {
      heard.asked.push(`${what} ${slotOf(channel)}`);
    };
    return {
      subscribe: (channel) => ask("plain", channel),
      unsubscribe: (channel) => ask("not plain", channel),
      subscribeSharded: async (channel) => {
        await ask("listen", channel);
        await this.answer(channel);
      },
      unsubscribeSharded: (channel) => ask("leave", channel),
      ping: async () => {},
      close: () => {
        heard.open = false;
      },
    };
  }
  seek(): void {}
  reconnect(): void {}
  async close(): Promise<void> {}

  open(): readonly string[] {
    return this.connections.flatMap(({ node, asked, open }) =>
      open ? [`${node}: ${asked.join(", ")}`] : [],
    );
  }
}

function setUp(plain = "p:client:x") {
  const [link, clock] = [new HandCluster(), new ManualClock()];
  const lost: number[][] = [];
  const shards = new Shards(
    link,
    clock,
    plain,
    1_000,
    () => {},
    (slots) => lost.push([...slots]),
  );
  return { link, clock, lost, shards };
}

describe("sharded channels", () => {
  it("one for each slot in which somebody waits, and one connection for each node", () => {
    const { link, shards } = setUp();
    for (const slot of [1, 2, 9_000, 1]) shards.waits(slot);
    expect(link.open()).toEqual(["a: listen 1, listen 2", "b: listen 9000"]);
  });

  it("end when nobody has waited for a while, and so do their connections", async () => {
    const { link, clock, shards } = setUp();
    for (const slot of [1, 2, 9_000]) shards.waits(slot);
    await settle();
    for (const slot of [1, 9_000]) shards.leaves(slot);
    await clock.advance(1_000);
    expect(link.open(), "somebody has waited lately").toEqual(["a: listen 1, listen 2", "b: listen 9000"]);
    await clock.advance(1_000);
    expect(link.open()).toEqual(["a: listen 1, listen 2, leave 1"]);
    shards.leaves(2);
    await clock.advance(3_000);
    expect(link.open()).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it("a connection that ends: its slots are looked at, and listened to where they are now", async () => {
    const { link, clock, lost, shards } = setUp();
    for (const slot of [1, 2, 9_000]) shards.waits(slot);
    await settle();
    link.moved.set(2, "b");
    link.connections[0]?.listener.onDown(null);
    expect(lost).toEqual([[1, 2]]);
    await clock.advance(500);
    expect(link.open()).toEqual(["b: listen 9000, listen 2", "a: listen 1"]);
    // And once more when they are heard again: a server that has not noticed yet tells the connection that has ended.
    expect(new Set(lost.slice(1).flat())).toEqual(new Set([1, 2]));
    await clock.advance(5_000);
    expect(lost.length).toBe(3);
  });

  it("a node that does not answer is given up after the deadline, and what it has is looked at", async () => {
    const { link, clock, lost, shards } = setUp();
    link.answer = () => new Promise(() => {});
    shards.waits(1);
    await clock.advance(1_000);
    expect(lost).toEqual([[1]]);
    expect(link.open()).toEqual([]);
    link.answer = async () => {};
    await clock.advance(500);
    expect(link.open()).toEqual(["a: listen 1"]);
  });

  it("a user who may not: plain channels from then on, and nothing is tried again", async () => {
    const { link, clock, lost, shards } = setUp();
    link.answer = () => Promise.reject(new Error("NOPERM this user has no permissions to run 'ssubscribe'"));
    shards.waits(1);
    await settle();
    expect(lost).toEqual([[1]]);
    expect(shards.channelOf(1)).toBe("p:client:x");
    await clock.advance(5_000);
    shards.waits(2);
    expect(link.connections.length).toBe(1);
    expect(await shards.test(1)).toMatch(/NOPERM/);
  });

  it("are in the slot of their entries, or are plain ones", () => {
    const { shards } = setUp();
    expect(shards.channelOf(77)).toBe(`p:client:x{${tagOfSlot(77)}}`);
    expect(slotOf(shards.channelOf(77))).toBe(77);
    const tagged = setUp("{app}:client:x").shards;
    expect(slotOf(tagged.channelOf(slotOf("{app}:{lock}")))).toBe(slotOf("app"));
    expect(setUp("odd{:client:x").shards.channelOf(77)).toBe("odd{:client:x");
  });
});

describe("the hub", () => {
  const self: Entry = {
    id: "e",
    owner: { client: "c", host: "h", pid: 1 },
    mode: "write",
    weight: 1,
    seq: 2n,
    expiresInMs: 30_000,
    ageMs: 0,
  };

  function hubOn(link: HandCluster) {
    const clock = new ManualClock();
    const hub = new Hub(link, clock, "p:client:x", 1_000, () => {});
    const calls: (Snapshot | undefined)[] = [];
    let settled = 0;
    hub.start(() => {
      settled += 1;
    });
    const wait = (): void => {
      const since = hub.connection;
      hub.asks(self.id);
      hub.waits(1, self.id, self.seq, since);
      hub.answered();
      hub.watch(1, self, (fresh) => calls.push(fresh));
    };
    return { clock, hub, calls, wait, settled: () => settled };
  }

  it("who began to wait before anybody listened looks when somebody does, also the first time", async () => {
    const link = new HandCluster();
    link.refuses = true;
    const { clock, calls, wait, settled } = hubOn(link);
    expect(settled()).toBe(1);
    wait();
    await settle();
    expect(calls).toEqual([]);
    link.refuses = false;
    await clock.advance(200);
    expect(calls).toEqual([undefined]);
  });

  it("a connection to a node that ends lets those look who wait in its slots, or have not begun to watch", async () => {
    const link = new HandCluster();
    const { hub, calls, wait } = hubOn(link);
    await settle();
    const since = hub.connection;
    wait();
    expect(link.open()).toEqual([`a: plain ${slotOf("p:client:x")}`, "a: listen 1"]);
    await settle();
    expect(calls).toEqual([]);
    link.connections[1]?.listener.onDown(null);
    expect(calls).toEqual([undefined]);
    // One whose append was sent before: its wake-up may have gone to the connection that ended.
    const other = { ...self, id: "f", seq: 3n };
    hub.waits(9_000, other.id, other.seq, since);
    hub.watch(9_000, other, (fresh) => calls.push(fresh));
    await settle();
    expect(calls).toEqual([undefined, undefined]);
  });

  it("a message that comes before the answer of a look, which is older, is not lost", async () => {
    const link = new HandCluster();
    const { hub, calls, wait } = hubOn(link);
    await settle();
    wait();
    hub.asks(self.id);
    link.connections[1]?.listener.onMessage("e\x002", "p:client:x{aaaa}");
    expect(calls).toHaveLength(1);
    hub.waits(1, self.id, self.seq, hub.connection);
    hub.answered();
    hub.watch(1, self, (fresh) => calls.push(fresh));
    expect(calls).toHaveLength(2);
    expect(calls[1]?.ahead.count).toBe(0);
  });

  it("a message of either channel wakes", async () => {
    const link = new HandCluster();
    const { calls, wait } = hubOn(link);
    await settle();
    wait();
    link.connections[1]?.listener.onMessage("e\x002", "p:client:x{aaaa}");
    expect(calls.map((fresh) => fresh?.ahead.count)).toEqual([0]);
    wait();
    link.connections[0]?.listener.onMessage("e\x002", "p:client:x");
    expect(calls.map((fresh) => fresh?.ahead.count)).toEqual([0, 0]);
  });
});
