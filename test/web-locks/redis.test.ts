/** The Web Locks suite on Redis, with both libraries: two managers with one prefix stand for two frames. */
import { afterAll, beforeAll } from "vitest";
import { LockManager } from "../../src/core/manager.ts";
import { byUrl, testServer } from "../helpers/redis.ts";
import { webLocksSuite } from "./suite.ts";

let server: Awaited<ReturnType<typeof testServer>>;
let stores = 0;

beforeAll(async () => {
  server = await testServer();
});

afterAll(() => server.close());

for (const library of ["ioredis", "redis"] as const) {
  webLocksSuite(`redis, ${library}`, async () => {
    const prefix = `web-locks-${process.pid}-${++stores}:`;
    const clients: LockManager[] = [];
    return {
      client: async () => {
        const client = new LockManager(byUrl(library)(server.url, { prefix }).backend);
        clients.push(client);
        return client;
      },
      close: async () => {
        await Promise.all(clients.map((client) => client.close()));
      },
    };
  });
}
