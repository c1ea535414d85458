/** Stores of the mysql backend for the contract, on a server that is started for the test file. */
import { randomBytes } from "node:crypto";
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll } from "vitest";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import type { ContractStore } from "../../src/testing/index.ts";
import type { TestMysql } from "./mysql.ts";

/** Starts a server before the cases and ends it after them; gives the function that opens a fresh store on it. */
export function mysqlStores(start: () => Promise<TestMysql>): () => ContractStore {
  let server: TestMysql;
  let admin: Pool;
  let url = "";

  beforeAll(async () => {
    server = await start();
    url = await server.database();
    admin = createPool({ uri: url, connectionLimit: 2 });
  });

  afterAll(async () => {
    await admin.end();
    await server.stop();
  });

  return () => {
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
  };
}
