/** Fleets of throwaway Redis servers for tests of Redlock: clients of each library, and a store for the contract made of them. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { startRedis, type Started } from "../../scripts/lib/redis-servers.mjs";
import { counterKey, evictedKeyOf } from "../../src/backends/redlock/keys.ts";
import {
  redlockBackend,
  type RedisClient,
  type RedlockBackend,
  type RedlockSettings,
} from "../../src/backends/redlock/index.ts";
import type { ContractStore } from "../../src/testing/index.ts";
import { safeIoredis } from "./redis.ts";

// Each server has a listener for the end of this process.
process.setMaxListeners(50);

/** Several independent servers, and a connection to look at each. */
export interface Servers {
  readonly servers: readonly Started[];
  readonly url: string;
  readonly lookers: readonly Redis[];
  close(): Promise<void>;
}

/** Starts so many servers. */
export async function startServers(
  count: number,
  options: { readonly args?: readonly string[]; readonly env?: (index: number) => NodeJS.ProcessEnv } = {},
): Promise<Servers> {
  const { args = [], env } = options;
  const servers = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      startRedis({ args, ...(env === undefined ? {} : { env: env(index) }) }),
    ),
  );
  const lookers = servers.map(({ port }) => new Redis(port, { lazyConnect: true }));
  for (const looker of lookers) looker.on("error", () => {});
  return {
    servers,
    lookers,
    url: urlOf(servers),
    close: async () => {
      for (const looker of lookers) looker.disconnect();
      await Promise.all(servers.map(({ server }) => server.remove()));
    },
  };
}

/** The URL of some servers, or of what stands in front of them. */
export function urlOf(places: readonly { readonly port: number }[], query = ""): string {
  return `redlock://${places.map(({ port }) => `127.0.0.1:${port}`).join()}${query}`;
}

/** A backend and how to end what it was made of. */
export interface Opened {
  readonly backend: RedlockBackend;
  readonly close: () => Promise<void>;
}

/** Opens a client of all servers. */
export type Open = (servers: Servers, settings: RedlockSettings) => Opened;

/** Clients of each library that are handed in, or connections of its own. */
export const opens: Readonly<Record<"ioredis" | "node-redis" | "by URL", Open>> = {
  ioredis: ({ servers }, settings) => {
    const clients = servers.map(({ port }) => new Redis(port, { ...safeIoredis, lazyConnect: true }));
    return handIn(clients, settings, () => clients.forEach((client) => client.disconnect()));
  },
  "node-redis": ({ servers }, settings) => {
    const clients = servers.map(({ port }) =>
      createClient({ socket: { host: "127.0.0.1", port }, disableOfflineQueue: true }),
    );
    return handIn(clients, settings, () => clients.forEach((client) => client.isOpen && client.destroy()));
  },
  "by URL": ({ url }, settings) => {
    const backend = redlockBackend({ url, ...settings });
    return { backend, close: () => backend.close() };
  },
};

function handIn(clients: readonly RedisClient[], settings: RedlockSettings, close: () => void): Opened {
  for (const client of clients) client.on("error", () => {});
  return { backend: redlockBackend({ clients, ...settings }), close: async () => close() };
}

let stores = 0;

/** A store for one case: a prefix of its own on servers that are shared. */
export function contractStore(servers: Servers, open: Open, settings: RedlockSettings = {}): ContractStore {
  const prefix = `case-${process.pid}-${++stores}:`;
  const opened: Opened[] = [];
  return {
    client: async () => {
      const one = open(servers, { prefix, deadlineMs: 2_000, quarantineMs: 0, ...settings });
      opened.push(one);
      // What cases have short lives for is not that it takes time to connect.
      await one.backend.ready();
      return one.backend;
    },
    litter: async () => {
      const keys = await Promise.all(servers.lookers.map((looker) => looker.keys("*")));
      const own = [prefix, evictedKeyOf(prefix, "")];
      return keys.flat().filter((key) => own.some((start) => key.startsWith(start)) || !isKnown(key));
    },
    close: async () => {
      await Promise.all(opened.map(({ backend }) => backend.close()));
      await Promise.all(opened.map(({ close }) => close()));
    },
  };
}

/** The counter of a node is the one key that stays; what other cases have left is theirs. */
function isKnown(key: string): boolean {
  return key === counterKey || key.startsWith("case-") || key.startsWith(evictedKeyOf("case-", ""));
}
