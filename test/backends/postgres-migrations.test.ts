/** How the tables of the postgres backend come about: races, rights, refusals; and what doctor sees. */
import { randomBytes } from "node:crypto";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import { connect } from "../../src/connect.ts";
import type { Finding } from "../../src/core/backend.ts";
import { LockError } from "../../src/core/errors.ts";
import { inProcesses } from "../helpers/migrators.ts";
import { sql, type TestPostgres, testPostgres } from "../helpers/postgres.ts";

let server: TestPostgres;

beforeAll(async () => {
  server = await testPostgres();
});

afterAll(() => server.stop());

const owner = { client: "c", host: "h", pid: 1 };
const entry = { id: "e", owner, mode: "write", weight: 1, ttlMs: 1_000 } as const;

it("creates nothing for those who only look", async () => {
  const client = postgresBackend({ url: await server.database() });
  onTestFinished(() => client.close());
  expect([await client.list("job"), await client.queues(""), await client.remove("job", "e")]).toEqual([
    [],
    [],
    false,
  ]);
  expect(await client.migrate()).toEqual([1]);
});

it("is created once by several processes and clients that race for it", async () => {
  const url = await server.database();
  const applied = await inProcesses(3, "postgres", "postgresBackend", url);
  expect(applied.flat()).toEqual([1]);
  const clients = await Promise.all(
    Array.from({ length: 4 }, () => connect(postgresBackend({ url, schema: "other" }))),
  );
  onTestFinished(async () => void (await Promise.all(clients.map((client) => client.close()))));
  await Promise.all(clients.map((client) => client.request("job", () => {})));
  expect(await sql(url, "SELECT version FROM other.versions")).toEqual([{ version: 1 }]);
});

it("works with the rights to read, write and execute once it was created", async () => {
  const url = await server.database();
  const creator = postgresBackend({ url });
  expect(await creator.migrate()).toEqual([1]);
  expect(await creator.migrate()).toEqual([]);
  await creator.close();
  const role = `plain_${randomBytes(6).toString("hex")}`;
  await sql(url, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  await sql(
    url,
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM PUBLIC",
  );
  await sql(
    url,
    `GRANT USAGE ON SCHEMA holdfast TO ${role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO ${role}`,
  );
  await sql(url, `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO ${role}`);
  const plain = Object.assign(new URL(url), { username: role, password: "secret" }).href;
  const [a, b] = [
    await connect(postgresBackend({ url: plain })),
    await connect(postgresBackend({ url: plain })),
  ];
  onTestFinished(async () => void (await Promise.all([a.close(), b.close()])));
  const lock = await a.acquire("job", { ttl: "300ms" });
  const waiting = b.acquire("job");
  await new Promise((resolve) => {
    setTimeout(resolve, 500);
  });
  expect(lock.held).toBe(true);
  expect(await lock.release()).toBe("released");
  await (await waiting).release();
  const other = postgresBackend({ url: plain, schema: "forbidden" });
  const error: unknown = await Promise.resolve(other.append("job", entry)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockError);
  expect(String(error)).toMatch(/permission denied/);
  await other.close();
});

it("is not created where that was not wanted, and a newer one is refused", async () => {
  const url = await server.database();
  const client = postgresBackend({ url, migrate: false });
  onTestFinished(() => client.close());
  await expect(client.list("job")).rejects.toMatchObject({
    code: "LOCK_UNSUPPORTED",
    message: expect.stringContaining("holdfast migrate"),
  });
  await client.migrate();
  expect(await client.list("job")).toEqual([]);
  await sql(url, "INSERT INTO holdfast.versions (version) VALUES (2)");
  const late = postgresBackend({ url });
  onTestFinished(() => late.close());
  await expect(late.list("job")).rejects.toMatchObject({
    message: expect.stringContaining("update holdfast"),
  });
});

it("refuses names of schemas that are none, and needs a url or a pool", () => {
  expect(() => postgresBackend({ url: "postgres://x", schema: 'a"; DROP TABLE b' })).toThrow(
    /letters, digits/,
  );
  expect(() => postgresBackend({})).toThrow(/either a url or a pool/);
  expect(() => postgresBackend({ url: "postgres://x", pool: new Pool() })).toThrow(/either a url or a pool/);
});

it("refuses transactions whose snapshot may be older than the lock", async () => {
  const url = await server.database();
  const client = postgresBackend({ url });
  onTestFinished(() => client.close());
  await client.migrate();
  await expect(
    sql(url, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT holdfast.append('[]'); COMMIT"),
  ).rejects.toThrow(/READ COMMITTED/);
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
