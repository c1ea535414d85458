/** Clients of throwaway Redis servers for tests: both libraries, each connection counted so that none is left open. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { redisBackend, type RedisBackend, type RedisSettings } from "../../src/backends/redis/index.ts";
import type { ContractStore } from "../../src/testing/index.ts";

/** Options without which a client would be refused. */
export const safeIoredis = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false } as const;

/** A client of a library, and how to end it. */
export interface Opened {
  readonly backend: RedisBackend;
  readonly close: () => Promise<void>;
}

/** Opens a client of one library. */
export type Open = (port: number, settings: RedisSettings) => Opened;

/** Clients that are handed in. */
export const handedIn: Readonly<Record<"ioredis" | "node-redis", Open>> = {
  ioredis: (port, settings) => {
    const client = new Redis(port, "127.0.0.1", { ...safeIoredis, lazyConnect: true });
    client.on("error", () => {});
    return { backend: redisBackend({ client, ...settings }), close: async () => client.disconnect() };
  },
  "node-redis": (port, settings) => {
    const client = createClient({ socket: { host: "127.0.0.1", port }, disableOfflineQueue: true });
    client.on("error", () => {});
    return {
      backend: redisBackend({ client, ...settings }),
      close: async () => {
        if (client.isOpen) client.destroy();
      },
    };
  },
};

let stores = 0;

/** A store for one case: a prefix of its own on a server that is shared. */
export function contractStore(port: number, open: Open): ContractStore {
  const prefix = `case-${process.pid}-${++stores}:`;
  const opened: Opened[] = [];
  let looker: Redis | null = null;
  return {
    client: () => {
      const one = open(port, { prefix });
      opened.push(one);
      return one.backend;
    },
    litter: async () => {
      looker ??= new Redis(port, "127.0.0.1");
      const keys = await looker.keys(`${prefix}*`);
      return keys;
    },
    close: async () => {
      await Promise.all(opened.map(({ close }) => close()));
      looker?.disconnect();
    },
  };
}
