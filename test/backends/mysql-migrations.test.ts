/** How the tables of the mysql backend come about: races, rights, refusals; and what doctor sees. */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { shardOf } from "../../src/backends/mysql/shards.ts";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { connect } from "../../src/connect.ts";
import { LockError } from "../../src/core/errors.ts";
import { inProcesses } from "../helpers/migrators.ts";
import { sql, type TestMysql, testMysql } from "../helpers/mysql.ts";

let server: TestMysql;

beforeAll(async () => {
  server = await testMysql();
});

afterAll(() => server.stop());

const owner = { client: "c", host: "h", pid: 1 };
const entry = { id: "e", owner, mode: "write", weight: 1, ttlMs: 1_000 } as const;

it("creates nothing for those who only look", async () => {
  const client = mysqlBackend({ url: await server.database() });
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
  const applied = await inProcesses(3, "mysql", "mysqlBackend", url);
  expect(applied.flat()).toEqual([1]);
  const clients = await Promise.all(
    Array.from({ length: 4 }, () => connect(mysqlBackend({ url, prefix: "other_" }))),
  );
  onTestFinished(async () => void (await Promise.all(clients.map((client) => client.close()))));
  await Promise.all(clients.map((client) => client.request("job", () => {})));
  expect(await sql(url, "SELECT version FROM other_versions")).toEqual([{ version: 1 }]);
});

it("works with the rights to read, write and execute once it was created", async () => {
  const url = await server.database();
  const name = new URL(url).pathname.slice(1);
  const creator = mysqlBackend({ url });
  expect(await creator.migrate()).toEqual([1]);
  expect(await creator.migrate()).toEqual([]);
  await creator.close();
  await sql(url, "DROP USER IF EXISTS few@'127.0.0.1'");
  await sql(url, "CREATE USER few@'127.0.0.1' IDENTIFIED BY 'secret'");
  await sql(url, `GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${name}.* TO few@'127.0.0.1'`);
  const few = Object.assign(new URL(url), { username: "few", password: "secret" }).href;
  const [a, b] = [await connect(mysqlBackend({ url: few })), await connect(mysqlBackend({ url: few }))];
  onTestFinished(async () => void (await Promise.all([a.close(), b.close()])));
  const lock = await a.acquire("job", { ttl: "300ms" });
  const waiting = b.acquire("job");
  await new Promise((resolve) => {
    setTimeout(resolve, 500);
  });
  expect(lock.held).toBe(true);
  expect(await lock.release()).toBe("released");
  await (await waiting).release();
  const other = mysqlBackend({ url: few, prefix: "forbidden_" });
  const error: unknown = await Promise.resolve(other.append("job", entry)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockError);
  expect(String(error)).toMatch(/denied/);
  await other.close();
});

it("is not created where that was not wanted, and a newer one is refused", async () => {
  const url = await server.database();
  const client = mysqlBackend({ url, migrate: false });
  onTestFinished(() => client.close());
  await expect(client.list("job")).rejects.toMatchObject({
    code: "LOCK_UNSUPPORTED",
    message: expect.stringContaining("holdfast migrate"),
  });
  await client.migrate();
  expect(await client.list("job")).toEqual([]);
  await sql(url, "INSERT INTO holdfast_versions (version) VALUES (2)");
  const late = mysqlBackend({ url });
  onTestFinished(() => late.close());
  await expect(late.list("job")).rejects.toMatchObject({
    message: expect.stringContaining("update holdfast"),
  });
});

it("refuses prefixes that are none, and needs a url or a pool", () => {
  expect(() => mysqlBackend({ url: "mysql://x", prefix: "a`; DROP TABLE b" })).toThrow(/letters, digits/);
  expect(() => mysqlBackend({})).toThrow(/either a url or a pool/);
});

it("counts shards as the server does", async () => {
  for (const name of ["", "a", "order:42", "日本", "n".repeat(500)]) {
    const [row] = await sql(server.url, "SELECT CRC32(?) & 255 AS shard", [name]);
    expect(shardOf(name)).toBe(Number(row?.["shard"]));
  }
});

it("examines the server", async () => {
  const client = mysqlBackend({ url: await server.database() });
  onTestFinished(() => client.close());
  const level = async (about: string): Promise<string | undefined> =>
    (await client.examine()).find((each) => each.about === about)?.level;
  expect(await level("schema")).toBe("problem");
  await client.migrate();
  expect(await level("schema")).toBe("ok");
  expect(await level("primary")).toBe("ok");
  expect(await level("clock")).toBe("ok");
  // The throwaway server does not wait for the disk.
  if (server.server !== undefined) expect(await level("innodb_flush_log_at_trx_commit")).toBe("problem");
});
