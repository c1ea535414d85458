/** One client of either library that is handed to many backends: all of them hear of its connection, and it hears of no leak. */
import type { EventEmitter } from "node:events";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createClient } from "redis";
import { createClient as createClient5 } from "redis-5";
import { expect, it, onTestFinished } from "vitest";
import { ask, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { redisBackend } from "../../src/backends/redis/index.ts";
import { redlockBackend } from "../../src/backends/redlock/index.ts";
import { safeIoredis } from "../helpers/redis.ts";

const kinds = [
  { name: "ioredis 6", open: (port: number) => new Redis(port, { ...safeIoredis, lazyConnect: true }) },
  { name: "ioredis 5", open: (port: number) => new Redis5(port, { ...safeIoredis, lazyConnect: true }) },
  { name: "node-redis 6", open: (port: number) => createClient({ ...at(port), disableOfflineQueue: true }) },
  { name: "node-redis 5", open: (port: number) => createClient5({ ...at(port), disableOfflineQueue: true }) },
];

const at = (port: number): { url: string } => ({ url: `redis://127.0.0.1:${port}` });

it.each(kinds)("$name", async ({ name, open }) => {
  const { server, port } = await startRedis();
  onTestFinished(() => server.remove());
  const client = open(port);
  const emitter: EventEmitter = client;
  emitter.on("error", () => {});
  onTestFinished(() => {
    if (client instanceof Redis || client instanceof Redis5) client.disconnect();
    else client.destroy();
  });
  const warnings: Error[] = [];
  const warned = (warning: Error): number => warnings.push(warning);
  process.on("warning", warned);
  onTestFinished(() => void process.off("warning", warned));
  const listeners = (): readonly number[] =>
    ["ready", "close", "end", "reconnecting", "error", "connect"].map((event) =>
      emitter.listenerCount(event),
    );
  const before = listeners();

  const backends = Array.from({ length: 12 }, (_, index) => [
    redisBackend({ client, prefix: `queue-${index}:` }),
    redlockBackend({ clients: [client], prefix: `plain-${index}:`, deadlineMs: 3_000 }),
  ]).flat();
  await Promise.all(backends.map((backend) => backend.list("any")));
  const down = new Promise((resolve) => {
    emitter.once(name.startsWith("io") ? "close" : "reconnecting", resolve);
  });
  await ask(port, "client", "kill", "type", "normal");
  await down;
  // Each of them is told that there is a connection again.
  const seen = await Promise.all(backends.map((backend) => backend.list("any")));
  await Promise.all(backends.map((backend) => backend.close()));

  expect(seen).toEqual(backends.map(() => []));
  expect(warnings).toEqual([]);
  expect(listeners()).toEqual(before);
});
