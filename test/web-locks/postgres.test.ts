/** The Web Locks suite on postgres, on a real server: two managers on one store stand for two frames. */
import { afterAll, beforeAll } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { type TestPostgres, testPostgres } from "../helpers/postgres.ts";
import { webLocksSuite } from "./suite.ts";

let server: TestPostgres;
let url = "";
let stores = 0;

beforeAll(async () => {
  server = await testPostgres();
  url = await server.database();
});

afterAll(() => server.stop());

webLocksSuite("postgres", async () => {
  const options = { url, schema: `s_${++stores}` };
  const clients: LockManager[] = [];
  return {
    client: async () => {
      const client = await connect(postgresBackend(options));
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
});
