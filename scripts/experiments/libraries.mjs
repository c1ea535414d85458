/** The libraries that experiments compare, made alike: ours, and two of others as controls. */
import { subscribe } from "node:diagnostics_channel";
import { createRequire } from "node:module";
import { EtcdBackend } from "../../dist/backends/etcd/backend.js";
import { connect, openBackend } from "../../dist/connect.js";

const load = createRequire(import.meta.url);

/** @typedef {import("../../dist/backends/etcd/index.js").OwnershipGuard} OwnershipGuard */

/**
 * @typedef {object} Held what every library gives, made alike
 * @property {bigint | null} token
 * @property {() => boolean} believes what the library says now
 * @property {() => number | null} validForMs for how long it says so; null where it does not say
 * @property {() => Promise<unknown>} release
 * @property {OwnershipGuard | null} [guard] what makes a transaction of the store's own fail once the lock is lost
 */

/**
 * @typedef {object} Setting
 * @property {string} url servers by commas for a Redlock
 * @property {number} ttlMs
 * @property {boolean} renew
 */

/** @typedef {{ renewed: (name: string) => void, lost: (name: string) => void }} Ears who is told of what happens to a lock */
/** @typedef {(name: string, waitMs: number) => Promise<Held>} Acquire */

/** @type {Record<string, (setting: Setting, ears: Ears) => Promise<Acquire>>} */
export const libraries = {
  holdfast: async ({ url, ttlMs, renew }, ears) => {
    const backend = await openBackend(url);
    const locks = await connect(backend, { ttl: ttlMs });
    subscribe("holdfast:renew", (message) => {
      if (!isRenewal(message)) return;
      const { name } = message;
      // It is published before the lock knows of it.
      queueMicrotask(() => ears.renewed(name));
    });
    return async (name, waitMs) => {
      const lock = await locks.acquire(name, { ttl: ttlMs, wait: waitMs, renew });
      lock.signal.addEventListener("abort", () => ears.lost(name), { once: true });
      return {
        token: lock.token,
        believes: () => lock.held,
        validForMs: () => lock.validForMs,
        release: () => lock.release(),
        guard: backend instanceof EtcdBackend ? backend.ownershipGuard(lock) : null,
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

  "redis-semaphore": async ({ url, ttlMs, renew }, ears) => {
    const { Mutex } = load("redis-semaphore");
    const [client] = await redisClients(url);
    return async (name, waitMs) => {
      const mutex = new Mutex(client, name, {
        lockTimeout: ttlMs,
        acquireTimeout: Math.max(1, waitMs),
        retryInterval: 20,
        refreshInterval: renew ? ttlMs / 3 : 0,
        onLockLost: () => ears.lost(name),
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

/** @param {unknown} message @returns {message is { name: string }} */
function isRenewal(message) {
  return (
    typeof message === "object" &&
    message !== null &&
    "outcome" in message &&
    message.outcome === "renewed" &&
    "name" in message &&
    typeof message.name === "string"
  );
}
