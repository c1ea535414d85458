/** The Redis backend against the contract from several processes at once: each client lives in the next of three. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { backendContract } from "../../src/testing/index.ts";
import { RemoteHost } from "../helpers/remote-backend.ts";
import { testServer } from "../helpers/redis.ts";

const hosts: RemoteHost[] = [];
let server: Awaited<ReturnType<typeof testServer>>;
let looker: Redis;
let [opened, stores] = [0, 0];

beforeAll(async () => {
  server = await testServer();
  looker = new Redis(server.url);
  // The build beside node_modules: from elsewhere no library would be found.
  const address = new URL("../../dist/backends/redis/index.js", import.meta.url).href;
  for (let count = 0; count < 3; count++) hosts.push(new RemoteHost(address, "redisBackend"));
}, 60_000);

afterAll(async () => {
  await Promise.all(hosts.map((host) => host.stop()));
  looker.disconnect();
  await server.close();
});

backendContract({
  name: "redis, three processes",
  open: () => {
    const prefix = `processes-${process.pid}-${++stores}:`;
    return {
      client: async () => {
        const host = hosts[opened++ % hosts.length];
        if (host === undefined) throw new Error("there is no host");
        return host.open({ url: server.url, prefix });
      },
      litter: () => looker.keys(`${prefix}*`),
      close: async () => {},
    };
  },
  runner: { describe, it },
  shortMs: 400,
  lagMs: 150,
  interleavings: 60,
});
