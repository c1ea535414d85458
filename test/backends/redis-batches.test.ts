/** The script on a real server: calls say the same and leave the same behind, together and in short, or one by one and in all their words. */
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startRedis, type Started } from "../../scripts/lib/redis-servers.mjs";
import { Batch } from "../../src/backends/redis/batch.ts";
import {
  appendCall,
  type Call,
  keepCall,
  listCall,
  Manner,
  ownOf,
  pruneCall,
  removeCall,
  renewCall,
} from "../../src/backends/redis/calls.ts";
import { keysOf } from "../../src/backends/redis/keys.ts";
import { asText } from "../../src/backends/redis/link.ts";
import { readReply } from "../../src/backends/redis/replies.ts";
import { callsScript } from "../../src/backends/redis/scripts.ts";

// One of its own, whatever is given: it is emptied again and again.
let redis: Started;
let client: Redis;
let runs = 0;

beforeAll(async () => {
  redis = await startRedis();
  client = new Redis(redis.port);
});

afterAll(async () => {
  client.disconnect();
  await redis.server.remove();
});

interface Step {
  readonly queue: string;
  readonly call: Call;
}

const taker = { take: () => {}, fail: () => {} };

/** Sends steps as one script call. */
async function send(prefix: string, steps: readonly Step[]): Promise<readonly unknown[]> {
  const batch = new Batch("", 0, 0);
  for (const { queue, call } of steps) batch.add(keysOf(prefix, queue), call, taker);
  const appends = steps.some(({ call }) => call.manner !== undefined);
  if (appends) batch.common = `channel\0["client","host",1]`;
  const reply = await client.eval(callsScript, batch.keys.length, ...batch.keys, ...batch.words(null));
  const read = readReply(batch.texts, reply);
  if (read === null) throw new Error(`no reply: ${String(reply)}`);
  return read.answers.slice(read.from);
}

/** What was said, with each time replaced by how many were seen before it: two runs have none in common. */
function withoutTimes(): (said: unknown) => unknown {
  const seen: string[] = [];
  const place = (time: string): string => {
    if (!seen.includes(time)) seen.push(time);
    return `t${seen.indexOf(time)}`;
  };
  const shown = (said: unknown): unknown =>
    Array.isArray(said)
      ? said.map(shown)
      : (said === null ? "refused" : asText(said)).replace(/\b\d{16}\b/g, place).replace(/\b\d{13}\b/g, "ms");
  return shown;
}

const queue = fc.constantFrom("a", "b", "c");
const id = fc.constantFrom("s", "t", "u", "v", "w", "x", "y", "z");
const manner = fc.constantFrom(
  new Manner(60_000, false, "w,1,,"),
  new Manner(60_000, true, "w,1,,"),
  new Manner(50_000, false, "w,1,,"),
  new Manner(60_000, false, "r,1,,"),
  new Manner(60_000, false, "w,1,,\0some metadata"),
  new Manner(60_000, false, "w,1,2,"),
  new Manner(60_000, true, "w,2,3,"),
);
const append = fc.record({ queue, call: fc.tuple(id, manner).map(([one, how]) => appendCall(one, how)) });
const other = fc.record({
  queue,
  call: fc.oneof(
    id.map((one) => removeCall(one, undefined)),
    fc.constant(pruneCall),
  ),
});
const step = fc.oneof({ arbitrary: append, weight: 3 }, { arbitrary: other, weight: 1 });

it("calls that travel together do what they do one by one", async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 40 }), async (steps) => {
    const [together, alone] = [withoutTimes(), withoutTimes()];
    const look: readonly Step[] = ["a", "b", "c"].map((name) => ({ queue: name, call: listCall }));
    const prefix = `batches-${++runs}`;
    const said = (await send(`${prefix}t:`, steps)).map(together);
    const saidAlone: unknown[] = [];
    for (const one of steps) saidAlone.push(...(await send(`${prefix}o:`, [one])).map(alone));
    expect(said).toEqual(saidAlone);
    // A list is in no order.
    const left = async (of: string): Promise<unknown> =>
      (await send(of, look)).map((list) => (Array.isArray(list) ? list.map(asText).toSorted() : list));
    expect(withoutTimes()(await left(`${prefix}t:`))).toEqual(withoutTimes()(await left(`${prefix}o:`)));
    await client.flushdb();
  });
  await fc.assert(property, { numRuns: 400 });
});

/** Until when an entry that came alone lives, as a list says it, and as the server does. */
async function livesUntil(prefix: string, name: string): Promise<readonly [said: number, key: number]> {
  const [list] = await send(prefix, [{ queue: name, call: listCall }]);
  const [, record] = Array.isArray(list) ? list.map(asText) : [];
  return [Number(record?.split(" ")[1]), await client.pexpiretime(keysOf(prefix, name).queue)];
}

it("an entry that came alone lives as long as it says, is never shortened, and keeps its life in company", async () => {
  const prefix = "alone:";
  const inA = (call: Call): readonly Step[] => [{ queue: "a", call }];
  const alike = new Manner(60_000, false, "w,1,,\0some metadata");
  const [answer] = await send(prefix, inA(appendCall("one", alike)));
  const seq = BigInt(String(answer));
  const [life, key] = await livesUntil(prefix, "a");
  // The whole ttl from the end of the millisecond of its seq; the key is there until that one is over.
  expect(life).toBe(Math.ceil(Number(seq) / 1_000) + 60_000);
  expect(key).toBeGreaterThanOrEqual(life - 1);
  expect(key).toBeLessThanOrEqual(life);
  // By a shorter ttl nothing changes, by either way; by a longer one it lives longer.
  expect(await send(prefix, inA(keepCall(1_000, 1, ownOf("one", seq))))).toEqual([[]]);
  expect(Number((await send(prefix, inA(renewCall("one", seq, 1_000))))[0])).toBeGreaterThan(50_000);
  expect(await livesUntil(prefix, "a")).toEqual([life, key]);
  expect(Number((await send(prefix, inA(renewCall("one", seq, 90_000))))[0])).toBe(90_000);
  const [longer, longerKey] = await livesUntil(prefix, "a");
  expect(longer).toBeGreaterThanOrEqual(life + 30_000);
  expect(longerKey).toBe(longer);
  // One like it, and one that waits behind it.
  await client.flushdb();
  const first = BigInt(String((await send(prefix, inA(appendCall("one", alike))))[0]));
  const [alone] = await livesUntil(prefix, "a");
  const [behind] = await send(prefix, inA(appendCall("two", alike)));
  const said = Array.isArray(behind) ? behind.map(asText) : [];
  expect(said.slice(2, 5)).toEqual(["1", "1", "one"]);
  expect(said[5]).toBe(`${first} ${alone} w,1,,channel\0["client","host",1]\0some metadata`);
  await client.flushdb();
});

it("one alone that is not to wait is refused, and one that comes too late does not come", async () => {
  const keys = keysOf("late:", "a");
  const names = [keys.queue, keys.entries, keys.order];
  const ask = (words: readonly string[]): Promise<unknown> => client.eval(callsScript, 3, ...names, ...words);
  const common = `channel\0["client","host",1]`;
  const atOnce = new Manner(60_000, true, "w,1,,");
  const [seconds = 0] = await client.time();
  const late = await ask(atOnce.alone("one", common, seconds * 1_000 - 5_000));
  expect(Array.isArray(late) && asText(late[2])).toBe("!LATE");
  expect(await client.dbsize()).toBe(0);
  expect(asText(await ask(atOnce.alone("one", common, seconds * 1_000 + 60_000)))).toMatch(/^\d{16}$/);
  const refused = await ask(atOnce.alone("two", common, seconds * 1_000 + 60_000));
  expect(Array.isArray(refused) && refused.slice(2)).toEqual([null]);
  expect(await client.dbsize()).toBe(1);
  await client.flushdb();
});

it("many that join free queues are answered by one text, each with a seq of its own", async () => {
  const steps = Array.from({ length: 250 }, (_, index) => ({
    queue: `free-${index}`,
    call: appendCall(`id-${index}`, new Manner(60_000, false, "w,1,,")),
  }));
  const seqs = (await send("many:", steps)).map((seq) => BigInt(String(seq)));
  // Across a hundred, and a second, too: each is one more than the one before.
  expect(seqs).toEqual(seqs.map((_, index) => (seqs[0] ?? 0n) + BigInt(index)));
  expect(await client.dbsize()).toBe(250);
  const leave = steps.map(({ queue: name }, index) => ({
    queue: name,
    call: removeCall(`id-${index}`, seqs[index]),
  }));
  expect(await send("many:", leave)).toEqual(leave.map(() => "1"));
  expect(await client.dbsize()).toBe(0);
});

/** Makes a line of writers by hand, takes its first out, and gives what was answered, what was told and who is left. */
async function takeFirstOut(seqs: readonly bigint[], livesMs: readonly number[]): Promise<unknown> {
  const { queue: name, entries, order } = keysOf("line:", "a");
  const [seconds = 0] = await client.time();
  const lives = livesMs.map((ms) => seconds * 1_000 + ms);
  const lasts = Math.max(...lives) + 60_000;
  await client.set(name, `\0${seqs.at(-1)} ${lasts} w\0id-${seqs.length - 1}`, "PXAT", lasts);
  for (const [place, seq] of seqs.entries()) {
    await client.hset(entries, `id-${place}`, `${seq} ${lives[place]} w,1,,told\0["client","host",1]`);
    await client.zadd(order, String(seq), `id-${place}`);
  }
  const listener = client.duplicate();
  const heard: string[] = [];
  listener.on("message", (_channel: string, message: string) => void heard.push(message));
  await listener.subscribe("told");
  const answers = await send("line:", [{ queue: "a", call: removeCall("id-0", seqs[0]) }]);
  // What was published before this is heard before its answer.
  await listener.ping();
  listener.disconnect();
  const left = await client.hkeys(entries);
  const keys = await client.dbsize();
  await client.flushdb();
  return { answers: answers.map(asText), heard: heard.map((text) => text.split("\0")[0]), left, keys };
}

it.each([
  [
    "all live",
    [30_000, 30_000, 30_000],
    { answers: ["1"], heard: ["id-1"], left: ["id-1", "id-2"], keys: 3 },
  ],
  ["it has expired", [-5_000, 30_000], { answers: ["0"], heard: ["id-1"], left: ["id-1"], keys: 3 }],
  [
    "the next has expired",
    [30_000, -5_000, 30_000],
    { answers: ["1"], heard: ["id-2"], left: ["id-2"], keys: 3 },
  ],
  ["it is the last", [30_000], { answers: ["1"], heard: [], left: [], keys: 0 }],
  ["it is the last and has expired", [-5_000], { answers: ["0"], heard: [], left: [], keys: 0 }],
])(
  "the first of a line leaves alike by the short way and by the long one: %s",
  async (_, lives, expected) => {
    // The short way takes seqs of 16 digits alone, as they are in our days.
    for (const first of [1_794_000_000_000_000n, 999_000_000_000_000n]) {
      const seqs = lives.map((_life, place) => first + BigInt(place));
      expect(await takeFirstOut(seqs, lives)).toEqual(expected);
    }
  },
);
