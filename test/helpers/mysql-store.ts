/** Stores of the mysql backend for the contract, on a server that is started for the test file. */
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll } from "vitest";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import type { ContractStore } from "../../src/testing/index.ts";
import type { TestMysql } from "./mysql.ts";

/**
 * Starts a server before the cases and ends it after them; gives the function that opens an empty store on it. All cases
 * use the same tables, which take longer to make than most cases last.
 */
export function mysqlStores(start: () => Promise<TestMysql>): () => ContractStore {
  let server: TestMysql;
  let admin: Pool;
  let url = "";

  beforeAll(async () => {
    server = await start();
    url = await server.database();
    admin = createPool({ uri: url, connectionLimit: 2 });
    const first = mysqlBackend({ url });
    await first.migrate();
    await first.close();
  });

  afterAll(async () => {
    await admin.end();
    await server.stop();
  });

  return () => ({
    // Connected before a case counts milliseconds.
    client: async () => {
      const client = mysqlBackend({ url });
      await client.list("nobody");
      return client;
    },
    litter: async () => {
      const [rows] = await admin.query<RowDataPacket[]>(
        "SELECT CONCAT('entry ', id) AS left_over FROM holdfast_entries UNION ALL SELECT CONCAT('eviction ', id) FROM holdfast_evicted",
      );
      return rows.map((row) => String(row["left_over"]));
    },
    close: async () => {
      for (const table of ["entries", "evicted"]) await admin.query(`DELETE FROM holdfast_${table}`);
    },
  });
}
