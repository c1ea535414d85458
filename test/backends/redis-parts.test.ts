/** The pure parts of the Redis backend: keys and slots, records, URLs, the server's clock; and batches, over a link by hand. */
import * as fc from "fast-check";
import { Command } from "ioredis";
import { Command as Command5 } from "ioredis-5";
import { describe, expect, it } from "vitest";
import { redisBackend, settingsOf } from "../../src/backends/redis/index.ts";
import { appendCall, Manner, removeCall } from "../../src/backends/redis/calls.ts";
import { isMoving, sentFailure } from "../../src/backends/redis/failures.ts";
import {
  hashTagOf,
  KeyNames,
  keysOf,
  nameOfKey,
  patternOf,
  slotOf,
  tagOfSlot,
} from "../../src/backends/redis/keys.ts";
import { readInfo } from "../../src/backends/redis/health.ts";
import { writeCommand } from "../../src/backends/redis/ioredis.ts";
import type { Kept, Link } from "../../src/backends/redis/link.ts";
import { Outbox } from "../../src/backends/redis/outbox.ts";
import { Phrases } from "../../src/backends/redis/phrases.ts";
import { packEntry, packOwner, readMessage, readRecord } from "../../src/backends/redis/records.ts";
import { Renewals } from "../../src/backends/redis/renewals.ts";
import { ServerClock, ServerClocks } from "../../src/backends/redis/server-clock.ts";
import { readRedisUrl } from "../../src/backends/redis/url.ts";
import type { NewEntry, Renewal, Renewed } from "../../src/core/backend.ts";
import type { LockError } from "../../src/core/errors.ts";
import { ManualClock, settle } from "../../src/testing/manual-clock.ts";

const names = fc.string({ minLength: 1, unit: "grapheme" }).filter((name) => !name.includes("\0"));

describe("what a library has given up following", () => {
  it.each([
    "Too many Cluster redirections. Last error: ReplyError: MOVED 1553 127.0.0.1:7000",
    "Too many Cluster redirections. Last error: ReplyError: ASK 1553 127.0.0.1:7000",
    "Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request during rehashing of slot",
    "Too many Cluster redirections",
    "MOVED 1553 127.0.0.1:7000",
    "TRYAGAIN Multiple keys request during rehashing of slot",
  ])("surely did not happen, and may be sent again: %s", (text) => {
    expect(isMoving(new Error(text))).toBe(true);
    expect(sentFailure(new Error(text))).toMatchObject({ code: "LOCK_UNAVAILABLE", retryable: true });
  });

  it("is not every refusal", () => {
    expect(isMoving(new Error("CLUSTERDOWN The cluster is down"))).toBe(false);
  });
});

describe("keys", () => {
  it("of different names are different, and say their name", () => {
    fc.assert(
      fc.property(names, names, (one, two) => {
        const [a, b] = [keysOf("p:", one), keysOf("p:", two)];
        expect(nameOfKey("p:", a.queue)).toBe(one);
        expect(nameOfKey("p:", a.order)).toBeNull();
        if (one !== two) expect(new Set([...Object.values(a), ...Object.values(b)]).size).toBe(8);
      }),
    );
  });

  it("of one queue share a slot, whatever its name", () => {
    fc.assert(
      fc.property(
        fc.oneof(names, fc.constantFrom("}", "}x", "{", "{}", "\u0001", "\u0001}", "a{b}c")),
        (name) => {
          expect(new Set(Object.values(keysOf("p:", name)).map(slotOf)).size).toBe(1);
        },
      ),
    );
  });

  it("have the slots that the specification of Redis Cluster gives", () => {
    expect(slotOf("123456789")).toBe(0x31c3);
    expect(hashTagOf("{user1000}.following")).toBe("user1000");
    expect(hashTagOf("foo{}{bar}")).toBe("foo{}{bar}");
    expect(hashTagOf("foo{{bar}}zap")).toBe("{bar");
  });

  it("there is a hash tag for each slot of a cluster", () => {
    for (let slot = 0; slot < 16_384; slot++) expect(slotOf(`p:client:x{${tagOfSlot(slot)}}`)).toBe(slot);
  });

  it("are found by a pattern that takes no character of a name for its own", () => {
    expect(patternOf("p:", "a*[b]?\\")).toBe("p:{a\\*\\[b\\]\\?\\\\*}");
  });
});

/** What scripts/append.lua makes of an entry, from its mode on. */
function recorded(entry: NewEntry, channel: string): string {
  const [shape = "", ...metadata] = packEntry(entry).split("\0");
  return [shape + channel, packOwner(entry.owner), ...metadata].join("\0");
}

describe("records", () => {
  const entry = {
    id: "i",
    owner: { client: "c", host: "h\0ost", pid: 7, label: "l,a b" },
    mode: "read" as const,
    weight: 3,
    permits: 9,
    ttlMs: 1_000,
  };

  it("come back as they were", () => {
    fc.assert(
      fc.property(fc.option(fc.string({ unit: "grapheme" }), { nil: undefined }), (metadata) => {
        const packed = recorded({ ...entry, metadata }, "pholdfast: client,1");
        const read = readRecord("i", `1700000000000000 1700000001000 ${packed}`, 1_700_000_000_500_000);
        expect(read).toMatchObject({
          id: "i",
          mode: "read",
          weight: 3,
          permits: 9,
          owner: entry.owner,
          metadata,
        });
        expect(read.seq).toBe(1_700_000_000_000_000n);
        expect([read.expiresInMs, read.ageMs]).toEqual([500, 500]);
      }),
    );
  });

  it("never show more life than is left", () => {
    const packed = recorded(entry, "");
    expect(readRecord("i", `1 2 ${packed}`, 1_001).expiresInMs).toBe(0);
    expect(readRecord("i", `1 2 ${packed}`, 999).expiresInMs).toBe(1);
  });
});

describe("messages", () => {
  it("that say nothing are ignored", () => {
    for (const text of ["", "x", "id\0no number", "\0evicted without a key"])
      expect(readMessage(text)).toBeNull();
  });

  it("of a wake-up carry what is ahead", () => {
    expect(readMessage("id\u000017")).toMatchObject({ wake: { id: "id", seq: 17n, ahead: { count: 0 } } });
    const packed = recorded(
      {
        id: "n",
        owner: { client: "c", host: "h", pid: 1 },
        mode: "read",
        weight: 1,
        ttlMs: 1,
        metadata: "a\0b",
      },
      "p",
    );
    expect(readMessage(`id\u000017\u00001000\u00002\u00002\u0000n\u000016 5000 ${packed}`)).toMatchObject({
      wake: {
        ahead: { count: 2, weight: 2, nearest: { id: "n", seq: 16n, metadata: "a\0b" }, nearestWriter: null },
      },
    });
  });

  it("of an eviction carry the key", () => {
    expect(readMessage("\0id\0p:{name}")).toEqual({ evicted: { id: "id", key: "p:{name}" } });
  });
});

describe("a URL", () => {
  it("names servers, a user, a database and settings", () => {
    expect(readRedisUrl("rediss://me:p%40ss@h:7000/3?prefix=x:&replicas=2")).toMatchObject({
      kind: "server",
      tls: {},
      hosts: [{ host: "h", port: 7_000 }],
      username: "me",
      password: "p@ss",
      db: 3,
    });
    expect(readRedisUrl("redis+sentinel://a,[::1]:27000/main/2")).toMatchObject({
      kind: "sentinel",
      hosts: [
        { host: "a", port: 26_379 },
        { host: "::1", port: 27_000 },
      ],
      primary: "main",
      db: 2,
    });
    expect(readRedisUrl("redis+cluster://:pw@a:1,b:2")).toMatchObject({ kind: "cluster", password: "pw" });
  });

  it.each([
    "redis://h:99999",
    "redis://h/x",
    "redis+cluster://h/1",
    "redis+sentinel://h",
    "redis://h?timeout=1",
    "redis://h:secret:1",
    "redis://user:%secret@h",
    "redis://user:pass@secret@h",
    "redis+sentinel://h/%",
  ])("that is wrong is refused without showing it: %s", (url) => {
    expect(() => readRedisUrl(url)).toThrow(TypeError);
    expect(() => readRedisUrl(url)).not.toThrow(/secret|99999/);
  });

  it("has only settings that make sense", () => {
    expect(() => redisBackend({ url: "redis://h?deadlineMs=x" })).toThrow(/deadlineMs/);
    expect(() => redisBackend({ url: "redis://h?client=other" })).toThrow(/client/);
    expect(() => redisBackend({ url: "redis://h?replicas=1&deadlineMs=500" })).toThrow(/confirmWithinMs/);
    // Nothing is confirmed unless it is asked for.
    expect(() => settingsOf({ deadlineMs: 500 })).not.toThrow();
  });
});

describe("the server's clock", () => {
  it("is never taken to be earlier than it is", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(500), fc.nat(500), fc.nat(5_000)), { minLength: 1 }),
        fc.integer({ min: -1e6, max: 1e6 }),
        (trips, offset) => {
          const clock = new ServerClock();
          let now = 0;
          for (const [there, back, pause] of trips) {
            expect(clock.learn(now + there + offset, now, now + there + back)).toBe(0);
            now += there + back + pause;
            expect(clock.at(now)).toBeGreaterThanOrEqual(now + offset);
          }
        },
      ),
    );
  });

  it("does not take an answer that took long for a step of the clock", () => {
    const clock = new ServerClock();
    // It was read when the answer was sent, at the end of these two seconds.
    expect(clock.learn(10_000, 0, 2_000)).toBe(0);
    expect(clock.learn(10_100, 2_100, 2_100)).toBe(0);
    expect(clock.learn(7_200, 2_200, 2_200)).toBeCloseTo(-3_000, 0);
  });

  it("is followed over a step forward and back", () => {
    const clock = new ServerClock();
    expect(clock.learn(1_000, 0, 1)).toBe(0);
    expect(clock.learn(61_000, 10, 11)).toBeGreaterThan(59_900);
    expect(clock.at(11)).toBeGreaterThanOrEqual(61_000);
    expect(clock.learn(1_030, 30, 31)).toBeLessThan(-59_900);
    expect(clock.at(31)).toBeLessThan(1_100);
  });

  it("of each node of a cluster is followed by itself", () => {
    const steps: number[] = [];
    const clocks = new ServerClocks((ms) => steps.push(ms));
    expect(clocks.at(1, 0)).toBeNull();
    for (let now = 0; now < 1_000; now += 10) {
      clocks.learn(1, now + 5, now, now + 1);
      clocks.learn(2, now + 90_000, now + 1, now + 2);
    }
    expect(clocks.at(1, 1_000)).toBeLessThan(1_100);
    expect(clocks.at(2, 1_000)).toBeGreaterThan(90_000);
    // A slot that has not answered: by the last that has.
    expect(clocks.at(3, 1_000)).toBe(clocks.at(2, 1_000));
    expect(steps).toEqual([]);
    clocks.learn(1, 91_000, 1_000, 1_001);
    expect([clocks.steps, steps.length]).toEqual([1, 1]);
  });
});

it("a command is written as ioredis writes it", () => {
  const word = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.string({ minLength: 250 }),
  );
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), (words) => {
      const text = writeCommand("evalsha", words);
      expect(text).toBe(new Command("evalsha", words).toWritable({}));
      expect(text).toBe(new Command5("evalsha", words).toWritable({}));
    }),
  );
});

it("INFO is read field by field", () => {
  const info = readInfo("# Server\r\nredis_version:7.0.15\r\nconfig_file:/a:b\r\n");
  expect([info.get("redis_version"), info.get("config_file")]).toEqual(["7.0.15", "/a:b"]);
});

/** A link that keeps what is sent, to be answered by hand. */
class HandLink implements Link {
  readonly library = "ioredis";
  readonly cluster = false;
  readonly inOrder = true;
  readonly lastError = null;
  isReady = true;
  reconnects = 0;
  readonly sent: Array<{
    command: string;
    args: readonly string[];
    kept: Kept | undefined;
    answer: (reply: unknown) => void;
    fail: (error: Error) => void;
  }> = [];

  canSend(): boolean {
    return this.isReady;
  }
  start(): void {}
  send(command: string, args: readonly string[], _key?: string, kept?: Kept): Promise<unknown> {
    return new Promise((answer, fail) => this.sent.push({ command, args, kept, answer, fail }));
  }
  async sendToAll(): Promise<readonly unknown[]> {
    return [];
  }
  async sendTo(): Promise<unknown> {
    return null;
  }
  nodeOf(): undefined {
    return undefined;
  }
  listen(): never {
    throw new Error("nobody listens");
  }
  seek(): void {}
  reconnect(): void {
    this.reconnects += 1;
  }
  async close(): Promise<void> {}
}

describe("the outbox", () => {
  const keys = new KeyNames("p:", false).of("a");

  function setUp(confirmation: { replicas: number; aof: number; withinMs: number } | null = null) {
    const [link, clock] = [new HandLink(), new ManualClock()];
    const outbox = new Outbox(link, clock, 1_000, confirmation, new ServerClocks(() => {}), () => 1);
    outbox.release();
    const said: string[] = [];
    const taker = (id: string) => ({
      take: (answer: unknown) => said.push(`${id} ${String(answer)}`),
      fail: ({ code }: LockError) => said.push(`${id} ${code}`),
    });
    const remove = (id: string): void => outbox.add(keys, removeCall(id, undefined), taker(id));
    const append = (id: string, common = "channel"): void => {
      const undo = (): void => void said.push(`${id} undone`);
      outbox.add(keys, appendCall(id, new Manner(1, false, "w,1,,")), { ...taker(id), undo }, common);
    };
    return { link, clock, outbox, said, remove, append };
  }

  /** Renews entries "0", "1", …, each in a queue of its own, and says what came of it. */
  function renew(outbox: Outbox, ttls: readonly number[], waiting: readonly string[] = []) {
    const renewals = ttls.map((ttlMs, place) => ({
      queue: `q${place}`,
      id: `${place}`,
      seq: 7n,
      ttlMs,
    }));
    const known = new KeyNames("p:", false);
    return new Promise<readonly Renewed[]>((resolve) => {
      const all = new Renewals(renewals, outbox, known, new Phrases(known), resolve);
      all.send((id) => waiting.includes(id));
    });
  }

  it("sends renewals of one ttl as one call, and asks again for those that are not alone", async () => {
    const { link, outbox, remove, append } = setUp();
    const renewed = renew(outbox, [1_000, 1_000, 1_000.5, 2_000, 1_000], ["1"]);
    append("late");
    remove("x");
    await settle();
    const [first] = link.sent;
    expect(first?.args.slice(2, 9)).toEqual(
      ["p:{q1}", "p:{q1}:e", "p:{q1}:o", "p:{q1}:x"].concat("p:{q0}", "p:{q2}", "p:{q3}"),
    );
    expect(first?.args.slice(-6)).toEqual([
      "r1\x007\x001000",
      "k1000\x002\x000\x007 2\x007 ",
      "k2000\x001\x003\x007 ",
      "k1000\x001\x004\x007 ",
      "alate\x001\x000\0w,1,,",
      "dx\0",
    ]);
    first?.answer(["1", "0", 900, [2], [], [], "!LATE", 1]);
    await settle();
    const [, late, again] = link.sent;
    expect(late?.args.slice(2, 5)).toEqual(["p:{a}", "p:{a}:e", "p:{a}:o"]);
    expect(again?.args.slice(-1)).toEqual(["r2\x007\x001000"]);
    again?.answer(["1", "0", -1]);
    expect(await renewed).toEqual([
      { outcome: "renewed", expiresInMs: 1_000 },
      { outcome: "renewed", expiresInMs: 900 },
      { outcome: "gone", evicted: true },
      { outcome: "renewed", expiresInMs: 2_000 },
      { outcome: "renewed", expiresInMs: 1_000 },
    ]);
  });

  it("takes renewals for unknown whose answer says nothing, or does not come", async () => {
    const { link, clock, outbox } = setUp();
    const wrong = renew(outbox, [1_000, 1_000]);
    await settle();
    link.sent[0]?.answer(["1", "0", null]);
    expect((await wrong).map(({ outcome }) => outcome)).toEqual(["unknown", "unknown"]);
    const late = renew(outbox, [1_000, 1_000]);
    await settle();
    await clock.advance(1_000);
    expect((await late).map(({ outcome }) => outcome)).toEqual(["unknown", "unknown"]);
    expect(await renew(outbox, [])).toEqual([]);
  });

  it("sends the calls of one tick together, and gives each its own answer", async () => {
    const { link, said, remove } = setUp();
    for (const id of ["a", "b", "c"]) remove(id);
    await settle();
    expect(link.sent.length).toBe(1);
    link.sent[0]?.answer(["1", "0", 1, "!WRONGTYPE somebody else's key", 0]);
    await settle();
    expect(said).toEqual(["a 1", "b LOCK_UNAVAILABLE", "c 0"]);
  });

  /** The calls of what was sent: two words come before them if one of them is an append. */
  function callsIn(args: readonly unknown[]): readonly unknown[] {
    const words = args.slice(Number(args[1]) + 2);
    if (String(words[0]).startsWith("u")) return words.slice(2);
    // An append alone says first until when it may come.
    return /^\d/.test(String(words[0])) ? words.slice(1) : words;
  }

  it("sends a call as it comes where they come one by one, and those that follow in its tick together", async () => {
    const { link, said, remove, append } = setUp();
    const lasts = (): unknown[] => link.sent.map(({ args }) => callsIn(args));
    remove("a");
    expect(lasts()).toEqual([]);
    await settle();
    append("b");
    expect(lasts()).toEqual([["da\0"], ["b\0", " +1 w,1,,channel", "1"]]);
    remove("c");
    remove("d");
    await settle();
    expect(lasts().slice(2)).toEqual([["dc\0", "dd\0"]]);
    remove("e");
    remove("f");
    await settle();
    expect(lasts().slice(3)).toEqual([["de\0", "df\0"]]);
    // Alone, they may be answered alone: by what a list would have said, and an append by its seq, which is the time.
    link.sent[0]?.answer(1);
    link.sent[1]?.answer("1000000");
    await settle();
    expect(said).toEqual(["a 1", "b 1000000"]);
    // A library may give numbers as text.
    link.sent[2]?.answer(["1", "0", 1, 1]);
    remove("f");
    await settle();
    link.sent[4]?.answer("1");
    await settle();
    expect(said.at(-1)).toBe("f 1");
    append("g");
    await settle();
    expect(Number(link.sent[5]?.args[5])).toBeGreaterThanOrEqual(2_000);
  });

  it("sends a call that waited for the answer before it as it comes, and in order what comes beside it", async () => {
    const { link, said, remove } = setUp();
    const lasts = (): unknown[] => link.sent.map(({ args }) => callsIn(args));
    for (const id of ["a", "b"]) remove(id);
    await settle();
    // Two that travelled together say nothing of the next.
    link.sent[0]?.answer("1 0 1 1");
    await settle();
    remove("c");
    expect(lasts()).toEqual([["da\0", "db\0"]]);
    await settle();
    link.sent[1]?.answer(1);
    await settle();
    remove("d");
    expect(lasts().slice(1)).toEqual([["dc\0"], ["dd\0"]]);
    for (const id of ["e", "f", "g"]) remove(id);
    await settle();
    expect(lasts().slice(3)).toEqual([["de\0"], ["df\0", "dg\0"]]);
    // Something else is under way: that is no call alone.
    link.sent[2]?.answer(1);
    await settle();
    for (const id of ["h", "i"]) remove(id);
    await settle();
    expect(lasts().slice(5)).toEqual([["dh\0", "di\0"]]);
    expect(said).toEqual(["a 1", "b 1", "c 1", "d 1"]);
  });

  it.each([null, undefined])("takes an answer for a failure that is %s", async (answer) => {
    const { link, said, remove } = setUp();
    remove("a");
    await settle();
    link.sent[0]?.answer(answer);
    await settle();
    expect(said).toEqual(["a LOCK_OUTCOME_UNKNOWN"]);
  });

  it("renews the same entries in the same words, and others in others", async () => {
    const { link, outbox } = setUp();
    const known = new KeyNames("p:", false);
    const phrases = new Phrases(known);
    const one = (place: number): Renewal => ({ queue: `q${place}`, id: `${place}`, seq: 7n, ttlMs: 1_000 });
    const many = Array.from({ length: 600 }, (_, place) => one(place));
    const renewed = (renewals: readonly Renewal[]): Promise<readonly Renewed[]> =>
      new Promise((resolve) => {
        new Renewals(renewals, outbox, known, phrases, resolve).send(() => false);
      });
    const answers = [renewed(many)];
    await settle();
    answers.push(renewed(many));
    await settle();
    const [first, second, again, andAgain] = link.sent;
    expect([first?.args[1], second?.args[1], link.sent.length]).toEqual(["500", "100", 4]);
    expect([again?.args === first?.args, andAgain?.args === second?.args]).toEqual([true, true]);
    expect([again?.kept !== undefined, again?.kept === first?.kept]).toEqual([true, true]);
    answers.push(renewed([...many.slice(0, 70), one(70)]), renewed(many.slice(1, 71)));
    await settle();
    expect(link.sent.slice(4).map(({ args }) => args.at(-1)?.slice(0, 12))).toEqual([
      "k1000\x0071\x000\x007",
      "k1000\x0070\x001\x007",
    ]);
    for (const { answer } of link.sent) answer(["1", "0", []]);
    const kept = { outcome: "renewed", expiresInMs: 1_000 };
    expect((await Promise.all(answers)).flat()).toEqual(Array.from({ length: 1_341 }, () => kept));
  });

  it("sends entries of different owners apart, in their order", async () => {
    const { link, append, remove } = setUp();
    append("a");
    remove("x");
    append("b", "other");
    remove("y");
    await settle();
    expect(
      link.sent.map(({ args }) => args.slice(Number(args[1]) + 3).map((arg) => arg.slice(0, 2))),
    ).toEqual([
      ["ch", "aa", "dx"],
      ["ot", "ab", "dy"],
    ]);
  });

  it("gives up what is not answered by the deadline, and the connection with it", async () => {
    const { link, clock, said, remove } = setUp();
    remove("a");
    await settle();
    await clock.advance(1_000);
    expect(said).toEqual(["a LOCK_OUTCOME_UNKNOWN"]);
    expect(link.reconnects).toBe(1);
    link.sent[0]?.answer(["1", "0", 1]);
    await settle();
    expect(said.length).toBe(1);
  });

  it("gives up a connection once, however many calls went by it", async () => {
    const { link, clock, said, remove } = setUp();
    for (const id of ["a", "b", "c"]) {
      remove(id);
      await settle();
      await clock.advance(1);
    }
    await clock.advance(1_000);
    expect([said.length, link.reconnects]).toEqual([3, 1]);
    for (const id of ["d", "e"]) remove(id);
    await settle();
    // They came one by one before, so the first of two does not wait for the other.
    for (const { answer } of link.sent.slice(3)) answer(["1", "0", "!READONLY a replica"]);
    await settle();
    expect([said.length, link.reconnects]).toEqual([5, 2]);
  });

  it("gives up what could not be sent, and never sends it", async () => {
    const { link, clock, outbox, said, remove } = setUp();
    link.isReady = false;
    remove("a");
    await settle();
    await clock.advance(1_000);
    expect(said).toEqual(["a LOCK_UNAVAILABLE"]);
    link.isReady = true;
    outbox.flush();
    expect(link.sent).toEqual([]);
  });

  it("keeps the order of calls when the server has lost the script", async () => {
    const { link, said, remove } = setUp();
    remove("a");
    await settle();
    remove("b");
    await settle();
    link.sent[0]?.fail(new Error("NOSCRIPT No matching script"));
    await settle();
    remove("c");
    await settle();
    expect(link.sent.length).toBe(2);
    link.sent[1]?.fail(new Error("NOSCRIPT No matching script"));
    await settle();
    expect(link.sent.map(({ command }) => command)).toEqual([
      "EVALSHA",
      "EVALSHA",
      "EVAL",
      "EVAL",
      "EVALSHA",
    ]);
    expect(link.sent.slice(2).map(({ args }) => args.at(-1))).toEqual(["da\0", "db\0", "dc\0"]);
    for (const { answer } of link.sent.slice(2)) answer(["1", "0", 1]);
    await settle();
    expect(said).toEqual(["a 1", "b 1", "c 1"]);
  });

  it("keeps the order of what found the script missing when its connection ended", async () => {
    const { link, outbox, remove } = setUp();
    remove("a");
    await settle();
    link.sent[0]?.fail(new Error("NOSCRIPT No matching script"));
    link.isReady = false;
    remove("b");
    await settle();
    // It is sent with its text, by a connection that takes nothing.
    expect(link.sent.map(({ command }) => command)).toEqual(["EVALSHA", "EVAL"]);
    link.sent[1]?.fail(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    await settle();
    link.isReady = true;
    outbox.flush();
    expect(link.sent.slice(2).map(({ args }) => args.at(-1))).toEqual(["da\0", "db\0"]);
  });

  it.each(["The client is offline", "Stream isn't writeable and enableOfflineQueue options is false"])(
    "sends what a library did not send when there is a connection: %s",
    async (text) => {
      const { link, clock, said, remove } = setUp();
      for (const id of ["a", "b"]) {
        remove(id);
        await settle();
      }
      for (const { fail } of link.sent) fail(new Error(text));
      await settle();
      expect([said, link.sent.length]).toEqual([[], 2]);
      await clock.advance(250);
      expect(link.sent.slice(2).map(({ args }) => args.at(-1))).toEqual(["da\0", "db\0"]);
      link.sent[2]?.answer(["1", "0", 1]);
      link.sent[3]?.fail(new Error(text));
      link.isReady = false;
      await clock.advance(750);
      expect(said).toEqual(["a 1", "b LOCK_UNAVAILABLE"]);
    },
  );

  it("sends an append once more that the server called late although it was not", async () => {
    const { link, said, append, remove } = setUp();
    for (const id of ["first", "second"]) remove(id);
    await settle();
    link.sent[0]?.answer(["1", "0", 1, 1]);
    await settle();
    remove("x");
    append("a");
    await settle();
    link.sent[1]?.answer(["61", "0", 1, "!LATE"]);
    await settle();
    expect(link.sent[2]?.args.slice(-2)).toEqual(["channel", ["aa", "1", "0", "w,1,,"].join("\0")]);
    expect(Number(link.sent[2]?.args[5]?.replace("u", ""))).toBeGreaterThan(61_000);
    link.sent[2]?.answer(["61", "1", "!LATE"]);
    await settle();
    expect(said).toEqual(["first 1", "second 1", "x 1", "a LOCK_UNAVAILABLE"]);
  });

  it("sends an append like the one before it by its id alone, and whole if it is sent again without that one", async () => {
    const { link, said, append, remove } = setUp();
    append("a");
    append("b");
    remove("x");
    append("c");
    await settle();
    const whole = (id: string): string => [`a${id}`, "1", "0", "w,1,,"].join("\0");
    expect(link.sent[0]?.args.slice(-4)).toEqual([whole("a"), "jb", "dx\0", "jc"]);
    link.sent[0]?.answer(["61", "0", "17", "!LATE", 1, "!LATE"]);
    await settle();
    expect(link.sent.slice(1).map(({ args }) => args.at(-1))).toEqual([whole("b"), whole("c")]);
    for (const { answer } of link.sent.slice(1)) answer("18");
    await settle();
    expect(said).toEqual(["a 17", "x 1", "b 18", "c 18"]);
  });

  it("takes one text for a list of words", async () => {
    const { link, said, append, remove } = setUp();
    append("a");
    remove("b");
    await settle();
    link.sent[0]?.answer("61 5 61000005 0");
    await settle();
    expect(said).toEqual(["a 61000005", "b 0"]);
  });

  it("takes back what too few replicas have confirmed", async () => {
    const { link, said, append } = setUp({ replicas: 2, aof: 0, withinMs: 100 });
    append("a");
    await settle();
    expect(
      link.sent.map(({ command, args }) => [command, ...args.slice(0, command === "WAIT" ? 2 : 0)]),
    ).toEqual([["EVALSHA"], ["WAIT", "2", "100"]]);
    link.sent[0]?.answer(["1", "0", "17"]);
    await settle();
    expect(said).toEqual([]);
    link.sent[1]?.answer(1);
    await settle();
    expect(said).toEqual(["a undone", "a LOCK_UNAVAILABLE"]);
  });

  it("fails everything when it is closed, and takes nothing more", async () => {
    const { outbox, said, remove } = setUp();
    remove("a");
    outbox.close();
    remove("b");
    expect(said).toEqual(["a LOCK_CLOSED", "b LOCK_CLOSED"]);
  });
});
