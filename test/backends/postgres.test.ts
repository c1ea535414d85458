/** The postgres backend against the contract, on a real server. */
import { randomBytes } from "node:crypto";
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
});

afterAll(async () => {
  await admin.end();
  await server.stop();
});

backendContract({
  name: "postgres",
  open: () => {
    const schema = `s_${randomBytes(6).toString("hex")}`;
    return {
      // Connected before a case counts milliseconds.
      client: async () => {
        const client = postgresBackend({ url, schema });
        await client.migrate();
        await client.list("nobody");
        return client;
      },
      litter: async () => {
        const { rows } = await admin.query(
          `SELECT 'entry ' || id AS left FROM ${schema}.entries UNION ALL SELECT 'eviction ' || id FROM ${schema}.evicted`,
        );
        return rows.map((row) => String(row.left));
      },
      close: async () => {
        await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      },
    };
  },
  runner: { describe, it },
  interleavings: 40,
});
