/** The mysql backend against the contract, on a real server. */
import { randomBytes } from "node:crypto";
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, describe, it } from "vitest";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { backendContract } from "../../src/testing/index.ts";
import { type TestMysql, testMysql } from "../helpers/mysql.ts";

let server: TestMysql;
let admin: Pool;
let url = "";

beforeAll(async () => {
  server = await testMysql();
  url = await server.database();
  admin = createPool({ uri: url, connectionLimit: 2 });
});

afterAll(async () => {
  await admin.end();
  await server.stop();
});

backendContract({
  name: "mysql",
  open: () => {
    const prefix = `t_${randomBytes(6).toString("hex")}_`;
    return {
      // Connected before a case counts milliseconds.
      client: async () => {
        const client = mysqlBackend({ url, prefix });
        await client.migrate();
        await client.list("nobody");
        return client;
      },
      litter: async () => {
        const [rows] = await admin.query<RowDataPacket[]>(
          `SELECT CONCAT('entry ', id) AS left_over FROM ${prefix}entries UNION ALL SELECT CONCAT('eviction ', id) FROM ${prefix}evicted`,
        );
        return rows.map((row) => String(row["left_over"]));
      },
      close: async () => {},
    };
  },
  runner: { describe, it },
  interleavings: 25,
});
