/** How the tables of the postgres backend come about: races, rights, refusals; and what doctor sees. */
import { randomBytes } from "node:crypto";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import type { Finding } from "../../src/core/backend.ts";
import { sqlMigrations } from "../helpers/sql-migrations.ts";
import { sql, type TestPostgres, testPostgres } from "../helpers/postgres.ts";

let server: TestPostgres;

beforeAll(async () => {
  server = await testPostgres();
});

afterAll(() => server.stop());

sqlMigrations({
  names: ["postgres", "postgresBackend"],
  open: (url, { tables, migrate } = {}) => postgresBackend({ url, schema: tables, migrate }),
  database: () => server.database(),
  async plainUser(url) {
    const role = `plain_${randomBytes(6).toString("hex")}`;
    await sql(url, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
    await sql(
      url,
      "REVOKE CREATE ON SCHEMA public FROM PUBLIC; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC",
    );
    await sql(url, `GRANT USAGE ON SCHEMA holdfast TO ${role}`);
    await sql(url, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO ${role}`);
    await sql(url, `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO ${role}`);
    return Object.assign(new URL(url), { username: role, password: "secret" }).href;
  },
  pretendNewer: async (url) => void (await sql(url, "INSERT INTO holdfast.versions (version) VALUES (2)")),
});

it("refuses names of schemas that are none, and needs a url or a pool", () => {
  expect(() => postgresBackend({ url: "postgres://x", schema: 'a"; DROP TABLE b' })).toThrow(
    /letters, digits/,
  );
  expect(() => postgresBackend({})).toThrow(/either a url or a pool/);
  expect(() => postgresBackend({ url: "postgres://u:secret@host:99999/x" })).toThrow(
    /^postgres: the URL cannot be read/,
  );
  expect(() => postgresBackend({ url: "postgres://x", pool: new Pool() })).toThrow(/either a url or a pool/);
});

it("refuses transactions whose snapshot may be older than the lock", async () => {
  const url = await server.database();
  const client = postgresBackend({ url });
  onTestFinished(() => client.close());
  await client.migrate();
  const append = "SELECT holdfast.append('q', 'id', true, 1, NULL, 1000000, false, 'channel', '{}', false)";
  await expect(sql(url, `BEGIN ISOLATION LEVEL REPEATABLE READ; ${append}; COMMIT`)).rejects.toThrow(
    /READ COMMITTED/,
  );
});

it("examines the server", async () => {
  const url = await server.database();
  const client = postgresBackend({ url });
  onTestFinished(() => client.close());
  const byName = (findings: readonly Finding[]): Map<string, Finding> =>
    new Map(findings.map((each) => [each.about, each]));
  const before = byName(await client.examine());
  expect(before.get("schema")).toMatchObject({ level: "problem", seen: "none" });
  await client.migrate();
  const after = byName(await client.examine());
  expect(after.get("schema")).toEqual({ level: "ok", about: "schema", seen: "version 1" });
  // The throwaway server is started without fsync.
  if (server.server !== undefined) expect(after.get("fsync")?.level).toBe("problem");
  expect([...after.keys()]).toEqual(
    expect.arrayContaining([
      "version",
      "primary",
      "fail-over",
      "encoding",
      "clock",
      "connection",
      "expired entries",
    ]),
  );
  expect(after.get("clock")?.level).toBe("ok");
  expect(after.get("connection")).toEqual({ level: "ok", about: "connection", seen: "direct" });
});
