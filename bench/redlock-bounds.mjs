/**
 * What a lock on a majority of servers costs at least, for the suite redlock: without a client library, and in batches on the
 * same one. No errors, no deadlines, nobody to tell, no owner to show: bounds, not contenders that anybody could use.
 */
import { randomBytes } from "node:crypto";
import { connect as connectSocket } from "node:net";

/** @typedef {import("ioredis").Redis} Redis */
/** @typedef {{ yes: number, no: number, resolve: () => void, reject: (error: Error) => void }} Vote */

/** The usual release of the recipe. */
export const releaseIfMine =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/** Values that start with an "a" are taken, the others released. What all servers did as asked is said in one word. */
const batch =
  "local life, all, results = ARGV[#ARGV], true, {} " +
  "for i, key in ipairs(KEYS) do local value, done = ARGV[i], nil " +
  "if string.byte(value) == 97 then done = redis.call('SET', key, value, 'NX', 'PX', life) and 1 or 0 " +
  "else value = 'a' .. string.sub(value, 2) done = redis.call('GET', key) == value and redis.call('DEL', key) or 0 end " +
  "if done == 0 then all = false end results[i] = done end return all or results";

/** As many at once as holdfast: while the servers work on one batch, the next is prepared. */
const calledAtOnce = 64;

/**
 * The calls of one tick go to each server as one script call, and a majority decides each.
 * @param {readonly Redis[]} clients
 * @param {number} quorum
 * @param {number} ttlMs
 */
export async function leastQuorum(clients, quorum, ttlMs) {
  const loaded = await Promise.all(clients.map((client) => client.script("LOAD", batch)));
  const digest = String(loaded[0]);
  const life = String(ttlMs);
  /** @type {string[]} */ let keys = [];
  /** @type {string[]} */ let values = [];
  /** @type {Vote[]} */ let votes = [];
  const flush = () => {
    if (keys.length === 0) return;
    const [sent, asked] = [[...keys, ...values, life], votes];
    const count = keys.length;
    [keys, values, votes] = [[], [], []];
    for (const client of clients) {
      void client.evalsha(digest, count, ...sent).then((results) => {
        for (let index = 0; index < asked.length; index++) {
          const vote = asked[index];
          if (vote === undefined) continue;
          if (Array.isArray(results) && results[index] !== 1) vote.no += 1;
          else vote.yes += 1;
          if (vote.yes === quorum) vote.resolve();
          else if (vote.no === quorum) vote.reject(new Error("busy"));
        }
      });
    }
  };
  const call = (/** @type {string} */ key, /** @type {string} */ value) =>
    new Promise((/** @type {(done: void) => void} */ resolve, reject) => {
      if (keys.length === 0) process.nextTick(flush);
      keys.push(key);
      values.push(value);
      votes.push({ yes: 0, no: 0, resolve, reject });
      if (keys.length === calledAtOnce) flush();
    });
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      const value = randomBytes(16).toString("hex");
      await call(name, `a${value}`);
      await run();
      await call(name, `d${value}`);
    },
  };
}

/** The floor without a client: one line of text for each answer is all that it reads. @param {readonly number[]} ports @param {number} quorum @param {number} ttlMs */
export async function bareQuorum(ports, quorum, ttlMs) {
  const sockets = ports.map(bareSocket);
  const digests = await Promise.all(sockets.map((send) => send(words("SCRIPT", "LOAD", releaseIfMine))));
  const digest = digests[0]?.split("\r\n")[1] ?? "";
  return {
    request: async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
      const value = randomBytes(16).toString("hex");
      const set = words("SET", name, value, "PX", String(ttlMs), "NX");
      await majority(quorum, sockets, (send) => send(set), "+OK\r\n");
      await run();
      const release = words("EVALSHA", digest, "1", name, value);
      await majority(quorum, sockets, (send) => send(release), ":1\r\n");
    },
  };
}

/** A command as it travels. @param {readonly string[]} parts */
function words(...parts) {
  return `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join("")}`;
}

/** Sends commands one after the other; an answer is one line, or a text of a given length. @param {number} port */
function bareSocket(port) {
  /** @type {((answer: string) => void)[]} */
  const asked = [];
  let heard = "";
  const socket = connectSocket({ port, host: "127.0.0.1", noDelay: true });
  socket.setEncoding("latin1");
  socket.on("data", (/** @type {string} */ text) => {
    heard += text;
    for (;;) {
      const [answer] = /^(?:\$\d+\r\n)?[^\r]*\r\n/.exec(heard) ?? [];
      if (answer === undefined) return;
      heard = heard.slice(answer.length);
      asked.shift()?.(answer);
    }
  });
  return (/** @type {string} */ command) =>
    new Promise((/** @type {(answer: string) => void} */ resolve) => {
      asked.push(resolve);
      socket.write(command, "latin1");
    });
}

/**
 * Resolves when a majority has given this answer; the others are not waited for.
 * @template Client
 * @param {number} quorum
 * @param {readonly Client[]} clients
 * @param {(client: Client) => Promise<unknown>} call
 * @param {unknown} wanted
 */
export function majority(quorum, clients, call, wanted) {
  return new Promise((resolve, reject) => {
    let [yes, no] = [0, 0];
    for (const client of clients) {
      call(client).then((answer) => {
        if (answer === wanted) yes += 1;
        else no += 1;
        if (yes === quorum) resolve(undefined);
        if (no === quorum) reject(new Error("busy"));
      }, reject);
    }
  });
}
