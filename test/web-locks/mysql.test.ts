/** The Web Locks suite on mysql, on a real server: two managers on one store stand for two frames. */
import { afterAll, beforeAll } from "vitest";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { type TestMysql, testMysql } from "../helpers/mysql.ts";
import { webLocksSuite } from "./suite.ts";

let server: TestMysql;
let url = "";
let stores = 0;

beforeAll(async () => {
  server = await testMysql();
  url = await server.database();
});

afterAll(() => server.stop());

webLocksSuite("mysql", async () => {
  const options = { url, prefix: `t_${++stores}_` };
  const clients: LockManager[] = [];
  return {
    client: async () => {
      // Here the victim of a theft hears of it at its next renewal, after a third of its ttl.
      const client = await connect(mysqlBackend(options), { ttl: "3s" });
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
});
