/**
 * What a lock on Redis with a token costs at least, for the suite redis: scripts that do only what any such lock must, on the
 * same client. No queue, nobody to tell, no errors, no deadlines: bounds, not contenders that anybody could use.
 */
import { randomBytes } from "node:crypto";

/** @typedef {import("ioredis").Redis} Redis */
/** @typedef {{ name: string, value: string, until: number }} Held a lock, and until when it is believed */

/**
 * Sends script calls as holdfast does, on the same client: written at once, which is faster than what ioredis does by itself.
 * @param {Redis} client
 * @returns {Promise<(digest: string, keys: readonly string[], words: readonly string[]) => Promise<unknown>>}
 */
async function caller(client) {
  // Not a literal: the type checker runs before the package is built.
  const built = new URL("../dist/backends/redis/ioredis.js", import.meta.url).href;
  const { IoredisLink } = await import(built);
  const link = new IoredisLink(client, false);
  return (digest, keys, words) => link.send("EVALSHA", [digest, String(keys.length)].concat(keys, words));
}

/** A token by the server's clock and a life by it: what plain SET does not give. */
const take =
  "local t = redis.call('TIME') local seq = string.format('%s%06d', t[1], t[2]) " +
  "local life = string.format('%.0f', t[1] * 1000 + math.ceil(t[2] / 1000) + ARGV[2]) " +
  "if redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. seq, 'NX', 'PXAT', life) then return seq end return 0";
const release =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** The numbers below a hundred, two digits each: cheaper than to write the last digits of a token anew each time. */
const lastDigits = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, "0")).join("");

/** The same for the calls of one tick: those that start with an "a" take, the others release. Its answer is one text. */
const batch =
  "local t = redis.call('TIME') local seq = t[1] * 1000000 + t[2] local call, sub = redis.call, string.sub " +
  `local results, hundred, head, digits = {}, nil, nil, '${lastDigits}' ` +
  "local life = string.format('%.0f', t[1] * 1000 + math.ceil(t[2] / 1000) + ARGV[#ARGV]) " +
  "for i, key in ipairs(KEYS) do local value = ARGV[i] if string.byte(value) == 97 then seq = seq + 1 " +
  "local last = seq % 100 if seq - last ~= hundred then hundred = seq - last head = string.format('%.0f', hundred / 100) end " +
  "local token = head .. sub(digits, 2 * last + 1, 2 * last + 2) " +
  "results[i] = call('SET', key, value .. ' ' .. token, 'NX', 'PXAT', life) and token or '0' " +
  "else results[i] = call('GET', key) == sub(value, 2) and call('DEL', key) and '1' or '0' end end return table.concat(results, ' ')";

/** Many renewals. */
const renew =
  "local results = {} for i, key in ipairs(KEYS) do " +
  "results[i] = redis.call('GET', key) == ARGV[i] and redis.call('PEXPIRE', key, ARGV[#ARGV]) or 0 end return results";
/** As many at once as holdfast: while the server works on one batch, the next is prepared. */
const renewedAtOnce = 320;
const calledAtOnce = 64;

/** One call at a time. @param {Redis} client @param {number} ttlMs */
export async function leastScript(client, ttlMs) {
  const call = await caller(client);
  const taking = String(await client.script("LOAD", take));
  const releasing = String(await client.script("LOAD", release));
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      const value = randomBytes(16).toString("hex");
      const token = await call(taking, [name], [value, String(ttlMs)]);
      if (token === 0) throw new Error("busy");
      await run();
      await call(releasing, [name], [`${value} ${String(token)}`]);
    },
  };
}

/** The calls of one tick at once; and many locks that are renewed each third of their ttl, as holdfast does. @param {Redis} client @param {number} ttlMs @param {number} heldTtlMs */
export async function leastBatch(client, ttlMs, heldTtlMs) {
  const send = await caller(client);
  const digest = String(await client.script("LOAD", batch));
  /** @type {string[]} */ let keys = [];
  /** @type {string[]} */ let values = [];
  /** @type {((result: unknown) => void)[]} */ let takers = [];
  const flush = () => {
    if (keys.length === 0) return;
    const to = takers;
    const answer = send(digest, keys, values.concat(String(ttlMs)));
    [keys, values, takers] = [[], [], []];
    void answer.then((results) => {
      const words = String(results).split(" ");
      to.forEach((taker, index) => taker(words[index]));
    });
  };
  const call = (/** @type {string} */ key, /** @type {string} */ value) =>
    new Promise((resolve) => {
      if (keys.length === 0) process.nextTick(flush);
      keys.push(key);
      values.push(value);
      takers.push(resolve);
      if (keys.length === calledAtOnce) flush();
    });
  const taken = async (/** @type {string} */ name) => {
    const value = `a${randomBytes(16).toString("hex")}`;
    const token = await call(name, value);
    if (token === "0") throw new Error("busy");
    return `${value} ${String(token)}`;
  };
  const keep = await keeper(client, heldTtlMs);
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      const value = await taken(name);
      await run();
      await call(name, `d${value}`);
    },
    hold: async (/** @type {string} */ name) => keep(name, await taken(name)),
  };
}

/** A place in a queue with a token by the server's clock, and how many are ahead. */
const join =
  "local t = redis.call('TIME') local seq = string.format('%s%06d', t[1], t[2]) " +
  "redis.call('ZADD', KEYS[1], seq, ARGV[1]) return { seq, redis.call('ZRANK', KEYS[1], ARGV[1]) }";
/** Leaves it, and tells the next one on the channel that its text begins with. */
const handOver =
  "redis.call('ZREM', KEYS[1], ARGV[1]) local first = redis.call('ZRANGE', KEYS[1], 0, 0)[1] " +
  "if first then redis.call('PUBLISH', string.match(first, '^[^ ]*'), first) end return 1";

/** A queue that hands over by a push: nobody expires, nobody cancels, a message that is lost ends it for all. @param {Redis} client */
export async function leastQueue(client) {
  const call = await caller(client);
  const joining = String(await client.script("LOAD", join));
  const leaving = String(await client.script("LOAD", handOver));
  const channel = `least:${randomBytes(9).toString("base64url")}`;
  /** @type {Map<string, () => void>} */ const waiting = new Map();
  /** @type {Set<string>} Told before their own answer had come. */ const early = new Set();
  const listener = client.duplicate();
  listener.on("message", (/** @type {string} */ _channel, /** @type {string} */ id) => {
    const wake = waiting.get(id);
    if (wake === undefined) early.add(id);
    else wake();
    waiting.delete(id);
  });
  await listener.subscribe(channel);
  let count = 0;
  return {
    request: async (
      /** @type {string} */ name,
      /** @type {(lock: { token: bigint }) => Promise<void>} */ run,
    ) => {
      const id = `${channel} ${++count}`;
      const queue = `least:${name}`;
      const answer = await call(joining, [queue], [id]);
      const [seq, ahead] = Array.isArray(answer) ? answer : [];
      if (ahead !== 0 && !early.delete(id)) {
        await new Promise((resolve) => waiting.set(id, () => resolve(undefined)));
      }
      await run({ token: BigInt(String(seq)) });
      await call(leaving, [queue], [id]);
    },
  };
}

/** Gives a function that renews a lock from then on. @param {Redis} client @param {number} ttlMs */
async function keeper(client, ttlMs) {
  const send = await caller(client);
  const digest = String(await client.script("LOAD", renew));
  /** @type {Held[]} */
  const held = [];
  setInterval(() => {
    for (let from = 0; from < held.length; from += renewedAtOnce) {
      const part = held.slice(from, from + renewedAtOnce);
      const sentAt = performance.now();
      const names = part.map(({ name }) => name);
      const words = part.map(({ value }) => value).concat(String(ttlMs));
      void send(digest, names, words).then((results) => {
        if (!Array.isArray(results)) throw new Error("no results");
        part.forEach((each, index) => {
          if (results[index] !== 1) throw new Error("lost");
          each.until = sentAt + ttlMs;
        });
      });
    }
  }, ttlMs / 3);
  return (/** @type {string} */ name, /** @type {string} */ value) => {
    held.push({ name, value, until: performance.now() + ttlMs });
  };
}
