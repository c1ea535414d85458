/** How the tables of the mysql backend come about: races, rights, refusals; and what doctor sees. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { shardOf } from "../../src/backends/mysql/shards.ts";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { sqlMigrations } from "../helpers/sql-migrations.ts";
import { sql, type TestMysql, testMysql } from "../helpers/mysql.ts";

let server: TestMysql;

beforeAll(async () => {
  server = await testMysql();
});

afterAll(() => server.stop());

sqlMigrations({
  names: ["mysql", "mysqlBackend"],
  open: (url, { tables, migrate } = {}) =>
    mysqlBackend({ url, prefix: tables === undefined ? undefined : `${tables}_`, migrate }),
  database: () => server.database(),
  async plainUser(url) {
    const user = `few_${randomBytes(6).toString("hex")}`;
    const name = new URL(url).pathname.slice(1);
    await sql(url, `CREATE USER ${user}@'127.0.0.1' IDENTIFIED BY 'secret'`);
    await sql(url, `GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${name}.* TO ${user}@'127.0.0.1'`);
    return Object.assign(new URL(url), { username: user, password: "secret" }).href;
  },
  pretendNewer: async (url) => void (await sql(url, "INSERT INTO holdfast_versions (version) VALUES (2)")),
});

it("refuses prefixes that are none, and needs a url or a pool", () => {
  expect(() => mysqlBackend({ url: "mysql://x", prefix: "a`; DROP TABLE b" })).toThrow(/letters, digits/);
  expect(() => mysqlBackend({})).toThrow(/either a url or a pool/);
  expect(() => mysqlBackend({ url: "mysql://u:secret@host:99999/x" })).toThrow(
    /^mysql: the URL cannot be read/,
  );
  expect(() => mysqlBackend({ url: "mysql://u:100%@host/x" })).toThrow(
    /^mysql: the password in the URL has a %/,
  );
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
