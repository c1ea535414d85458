/** The script on a real server: calls say the same and leave the same behind, together and in short, or one by one and in all their words. */
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startRedis, type Started } from "../../scripts/lib/redis-servers.mjs";
import { Batch } from "../../src/backends/redis/batch.ts";
import {
  appendCall,
  type Call,
  listCall,
  mannerOf,
  pruneCall,
  removeCall,
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
  const before = appends ? ["0", `channel\0["client","host",1]`] : [];
  const words = [...batch.keys, ...before, ...batch.texts];
  const reply = await client.eval(callsScript, batch.keys.length, ...words);
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
  mannerOf(60_000, false, "w,1,,"),
  mannerOf(60_000, true, "w,1,,"),
  mannerOf(50_000, false, "w,1,,"),
  mannerOf(60_000, false, "r,1,,"),
  mannerOf(60_000, false, "w,1,,\0some metadata"),
  mannerOf(60_000, false, "w,1,2,"),
  mannerOf(60_000, true, "w,2,3,"),
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

it("many that join free queues are answered by one text, each with a seq of its own", async () => {
  const steps = Array.from({ length: 250 }, (_, index) => ({
    queue: `free-${index}`,
    call: appendCall(`id-${index}`, mannerOf(60_000, false, "w,1,,")),
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
