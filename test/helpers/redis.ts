/** Clients of Redis servers for tests: each library and version, by URL or handed in, and a store for the contract made of them. */
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis-5";
import { startRedis } from "../../scripts/lib/redis-servers.mjs";
import {
  redisBackend,
  type RedisBackend,
  type RedisClient,
  type RedisSettings,
} from "../../src/backends/redis/index.ts";
import type { ContractStore } from "../../src/testing/index.ts";

/** Options without which a client of ioredis would be refused. */
export const safeIoredis = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false } as const;

/** A backend and how to end what it was made of. */
export interface Opened {
  readonly backend: RedisBackend;
  readonly close: () => Promise<void>;
}

/** Opens a client of the server at a URL. */
export type Open = (url: string, settings: RedisSettings) => Opened;

function handIn(client: RedisClient, settings: RedisSettings, close: () => void): Opened {
  client.on("error", () => {});
  return { backend: redisBackend({ client, ...settings }), close: async () => close() };
}

/** Clients of each library that are handed in. */
export const handedIn: Readonly<Record<"ioredis 6" | "ioredis 5" | "node-redis 6" | "node-redis 5", Open>> = {
  "ioredis 6": (url, settings) => {
    const client = new Redis(url, { ...safeIoredis, lazyConnect: true });
    return handIn(client, settings, () => client.disconnect());
  },
  "ioredis 5": (url, settings) => {
    const client = new Redis5(url, { ...safeIoredis, lazyConnect: true });
    return handIn(client, settings, () => client.disconnect());
  },
  "node-redis 6": (url, settings) => {
    const client = createClient({ url, disableOfflineQueue: true });
    return handIn(client, settings, () => client.isOpen && client.destroy());
  },
  "node-redis 5": (url, settings) => {
    const client = createClient5({ url, disableOfflineQueue: true });
    return handIn(client, settings, () => client.isOpen && client.destroy());
  },
};

/** Lets a store give clients that are connected already, for cases about short lives on servers that are far away. */
export function connected(store: ContractStore): ContractStore {
  return {
    ...store,
    client: async () => {
      const client = await store.client();
      await client.list("-connected");
      return client;
    },
  };
}

/** Opens connections of its own, with one of the libraries. */
export function byUrl(library: "ioredis" | "redis"): Open {
  return (url, settings) => {
    const backend = redisBackend({
      url: `${url}${url.includes("?") ? "&" : "?"}client=${library}`,
      ...settings,
    });
    return { backend, close: () => backend.close() };
  };
}

/** The server that was given for tests, or one of its own. */
export async function testServer(): Promise<{ url: string; close: () => Promise<void> }> {
  const given = process.env["HOLDFAST_TEST_REDIS_URL"];
  if (given !== undefined && given !== "") return { url: given, close: async () => {} };
  const { server, port } = await startRedis();
  return { url: `redis://127.0.0.1:${port}`, close: () => server.remove() };
}

let stores = 0;

/** A store for one case: a prefix of its own on servers that are shared. */
export function contractStore(
  url: string,
  open: Open,
  keysWith: (prefix: string) => Promise<readonly string[]>,
): ContractStore & { readonly prefix: string } {
  const prefix = `case-${process.pid}-${++stores}:`;
  const opened: Opened[] = [];
  return {
    prefix,
    client: () => {
      const one = open(url, { prefix });
      opened.push(one);
      return one.backend;
    },
    litter: () => keysWith(prefix),
    close: async () => {
      await Promise.all(opened.map(({ backend }) => backend.close()));
      await Promise.all(opened.map(({ close }) => close()));
    },
  };
}
