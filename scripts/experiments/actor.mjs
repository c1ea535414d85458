/** One client of an experiment in a process of its own, with the library that it is told: does one thing after the other, as it is told. */
import { createRequire } from "node:module";
import { connect } from "../../dist/connect.js";
import { RemoteResource } from "../../dist/verify/live/resource-client.js";

const load = createRequire(import.meta.url);

/**
 * @typedef {object} Held what every library gives, made alike
 * @property {bigint | null} token
 * @property {() => boolean} believes what the library says now
 * @property {() => number | null} validForMs for how long it says so; null where it does not say
 * @property {() => Promise<unknown>} release
 */

/**
 * @typedef {object} Setting
 * @property {string} url servers by commas for a Redlock
 * @property {number} ttlMs
 * @property {boolean} renew
 */

/** @typedef {(name: string, waitMs: number) => Promise<Held>} Acquire */

/** @type {Record<string, (setting: Setting) => Promise<Acquire>>} */
const libraries = {
  holdfast: async ({ url, ttlMs, renew }) => {
    const locks = await connect(url, { ttl: ttlMs });
    return async (name, waitMs) => {
      const lock = await locks.acquire(name, { ttl: ttlMs, wait: waitMs, renew });
      lock.signal.addEventListener("abort", () => lostAt.set(name, process.hrtime.bigint()), { once: true });
      return {
        token: lock.token,
        believes: () => lock.held,
        validForMs: () => lock.validForMs,
        release: () => lock.release(),
      };
    };
  },

  "redlock@5": async ({ url, ttlMs, renew }) => {
    const { default: Redlock } = load("redlock-5");
    const clients = await redisClients(url);
    return async (name, waitMs) => {
      const retryDelay = 20;
      // A release or an extension is not tried again: only who waits for a lock does.
      const once = { retryCount: 0, retryDelay, retryJitter: 0 };
      const patient = { retryCount: Math.ceil(waitMs / retryDelay) };
      const redlock = new Redlock(clients, {
        ...once,
        automaticExtensionThreshold: Math.floor(ttlMs / 2),
      });
      redlock.on("error", () => {});
      if (!renew) {
        const lock = await redlock.acquire([name], ttlMs, patient);
        return redlockHeld(
          () => lock,
          () => lock.release(),
        );
      }
      // Its watchdog is at work inside `using` only.
      let end = () => {};
      const over = new Promise((resolve) => {
        end = () => resolve(undefined);
      });
      return new Promise((resolve, reject) => {
        const using = redlock.using([name], ttlMs, patient, async (/** @type {AbortSignal} */ signal) => {
          // Inside it, the signal is all that a caller is told.
          resolve({
            token: null,
            believes: () => !signal.aborted,
            validForMs: () => null,
            release: async () => end(),
          });
          await over;
        });
        using.catch(reject);
      });
    };
  },

  "redis-semaphore": async ({ url, ttlMs, renew }) => {
    const { Mutex } = load("redis-semaphore");
    const [client] = await redisClients(url);
    return async (name, waitMs) => {
      const mutex = new Mutex(client, name, {
        lockTimeout: ttlMs,
        acquireTimeout: Math.max(1, waitMs),
        retryInterval: 20,
        refreshInterval: renew ? ttlMs / 3 : 0,
        onLockLost: () => lostAt.set(name, process.hrtime.bigint()),
      });
      await mutex.acquire();
      return {
        token: null,
        believes: () => mutex.isAcquired,
        validForMs: () => null,
        release: () => mutex.release(),
      };
    };
  },
};

/**
 * @param {() => any} lock
 * @param {() => Promise<unknown>} release
 * @returns {Held}
 */
function redlockHeld(lock, release) {
  // Its lock says until when it is valid; nothing in the library compares that with the clock for the caller.
  const validForMs = () => (lock() === undefined ? null : Math.max(0, lock().expiration - Date.now()));
  return { token: null, believes: () => validForMs() !== 0, validForMs, release };
}

/** Clients that fail at once when a server cannot be reached. @param {string} url */
async function redisClients(url) {
  const { Redis } = load("ioredis");
  return Promise.all(
    url.split(",").map(async (each) => {
      const client = new Redis(each, {
        enableOfflineQueue: false,
        autoResendUnfulfilledCommands: false,
        maxRetriesPerRequest: 0,
        retryStrategy: () => 20,
        lazyConnect: true,
      });
      client.on("error", () => {});
      await client.connect().catch(() => {});
      return client;
    }),
  );
}

/** When the library told that a lock was lost. @type {Map<string, bigint>} */
const lostAt = new Map();
/** @type {Map<string, Held>} */
const held = new Map();
/** @type {Acquire} */
let acquire = async () => {
  throw new Error("not opened");
};
/** @type {{ fenced: RemoteResource, unfenced: RemoteResource } | null} */
let resources = null;

/** What can be asked. @type {Record<string, (...args: any[]) => Promise<unknown>>} */
const deeds = {
  async open(
    /** @type {string} */ library,
    /** @type {Setting} */ setting,
    /** @type {{ fenced: number, unfenced: number }} */ ports,
  ) {
    resources = {
      fenced: new RemoteResource(ports.fenced),
      unfenced: new RemoteResource(ports.unfenced),
    };
    const make = libraries[library];
    if (make === undefined) throw new Error(`there is no ${library}`);
    acquire = await make(setting);
  },

  async acquire(/** @type {string} */ name, /** @type {number} */ waitMs) {
    const invokedAt = process.hrtime.bigint();
    const startedAt = performance.now();
    const one = await acquire(name, waitMs);
    const okAt = process.hrtime.bigint();
    held.set(name, one);
    const validForMs = one.validForMs();
    const validUntil = validForMs === null ? null : okAt + BigInt(Math.floor(validForMs * 1e6));
    return {
      invokedAt,
      okAt,
      validUntil,
      token: one.token,
      tookMs: performance.now() - startedAt,
      believes: one.believes(),
    };
  },

  /** Where the logs of a name end. */
  async read(/** @type {string} */ name, /** @type {bigint} */ token) {
    return {
      fenced: await resources?.fenced.read(name, token),
      unfenced: await resources?.unfenced.read(name, token),
    };
  },

  /** Blocks the event loop, if told so, and writes without another look at the lock; says what the library would have said. */
  async write(
    /** @type {string} */ name,
    /** @type {any} */ write,
    /** @type {{ fenced: number | null, unfenced: number | null }} */ at,
    hangMs = 0,
  ) {
    const until = performance.now() + hangMs;
    while (performance.now() < until);
    const believes = held.get(name)?.believes() ?? false;
    const seenAt = process.hrtime.bigint();
    const [fenced, unfenced] = await Promise.all([
      at.fenced === null ? null : resources?.fenced.write({ ...write, at: at.fenced }),
      at.unfenced === null ? null : resources?.unfenced.write({ ...write, at: at.unfenced }),
    ]);
    return { believes, seenAt, fenced, unfenced };
  },

  async believes(/** @type {string} */ name) {
    return { believes: held.get(name)?.believes() ?? false, seenAt: process.hrtime.bigint() };
  },

  async lostAt(/** @type {string} */ name) {
    return lostAt.get(name) ?? null;
  },

  async release(/** @type {string} */ name) {
    const one = held.get(name);
    held.delete(name);
    lostAt.delete(name);
    try {
      await one?.release();
    } catch {
      // A lock that was lost cannot be released.
    }
  },
};

process.on(
  "message",
  (/** @type {{ call: number, what: string, args: unknown[] }} */ order) => void obey(order),
);

/** @param {{ call: number, what: string, args: unknown[] }} order */
async function obey({ call, what, args }) {
  try {
    const deed = deeds[what];
    if (deed === undefined) throw new Error(`nobody can ${what}`);
    process.send?.({ call, value: await deed(...args) });
  } catch (error) {
    const text = error instanceof Error ? ("code" in error ? String(error.code) : error.name) : String(error);
    process.send?.({ call, error: text });
  }
}

process.on("disconnect", () => process.exit());
process.on("SIGINT", () => {});
// A library of others that leaves a rejection unhandled is not to end the experiment.
process.on("unhandledRejection", () => {});
process.on("uncaughtException", () => {});
