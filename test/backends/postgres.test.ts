/** The postgres backend against the contract, on a real server. */
import { Pool } from "pg";
import { afterAll, beforeAll, describe, it } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import { backendContract } from "../../src/testing/index.ts";
import { type TestPostgres, testPostgres } from "../helpers/postgres.ts";

let server: TestPostgres;
let admin: Pool;
let url = "";

beforeAll(async () => {
  server = await testPostgres();
  url = await server.database();
  admin = new Pool({ connectionString: url, max: 2 });
  const first = postgresBackend({ url });
  await first.migrate();
  await first.close();
});

afterAll(async () => {
  await admin.end();
  await server.stop();
});

// All cases use the same tables, which take longer to make than most cases last.
backendContract({
  name: "postgres",
  open: () => ({
    // Connected before a case counts milliseconds.
    client: async () => {
      const client = postgresBackend({ url });
      await client.list("nobody");
      return client;
    },
    litter: async () => {
      const { rows } = await admin.query(
        "SELECT 'entry ' || id AS left FROM holdfast.entries UNION ALL SELECT 'eviction ' || id FROM holdfast.evicted",
      );
      return rows.map((row) => String(row.left));
    },
    close: async () => {
      for (const table of ["entries", "evicted"]) await admin.query(`DELETE FROM holdfast.${table}`);
    },
  }),
  runner: { describe, it },
  interleavings: 40,
});
