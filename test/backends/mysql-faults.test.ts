/** The mysql backend while its server crashes, freezes, cuts connections or refuses to write. */
import { createHash } from "node:crypto";
import { createConnection, createPool } from "mysql2/promise";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startMysql } from "../../scripts/lib/mysql-server.mjs";
import { mysqlBackend } from "../../src/backends/mysql/index.ts";
import { connect } from "../../src/connect.ts";
import { hasCode } from "../../src/core/errors.ts";
import { sql } from "../helpers/mysql.ts";
import { type Breakable, sqlFaults, stopProcess } from "../helpers/sql-faults.ts";

let started: Awaited<ReturnType<typeof startMysql>>;
let databases = 0;

beforeAll(async () => {
  started = await startMysql();
});

afterAll(() => started.server.remove());

async function database(): Promise<string> {
  const name = `d${++databases}`;
  await sql(started.url, `CREATE DATABASE ${name}`);
  return started.url.replace(/mysql$/, name);
}

const others = "FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()";

const breakable: Breakable = {
  open: (opening) => mysqlBackend(opening),
  database,
  async openOnExhaustedPool(url) {
    const pool = createPool({ uri: url, connectionLimit: 2 });
    const borrowed = [await pool.getConnection(), await pool.getConnection()];
    return {
      backend: mysqlBackend({ pool }),
      async giveBack() {
        for (const connection of borrowed) connection.release();
        await pool.end();
      },
    };
  },
  get port() {
    return started.port;
  },
  kill: () => started.server.kill(),
  start: () => started.server.start(),
  freeze: () => stopProcess(Number(started.server.pid)),
  thaw: async () => started.server.resume(),
  async cut(url) {
    for (const { id } of await sql(url, `SELECT id AS id ${others}`))
      await sql(url, `KILL ${id}`).catch(() => {});
  },
  async dropTables(url) {
    for (const table of ["entries", "shards", "evicted", "fences", "row_locks", "versions"])
      await sql(url, `DROP TABLE holdfast_${table}`);
    for (const { name } of await sql(
      url,
      "SELECT routine_name AS name FROM information_schema.routines WHERE routine_schema = DATABASE()",
    ))
      await sql(url, `DROP PROCEDURE ${name}`);
  },
  async emptyTables(url) {
    for (const table of ["shards", "entries"]) await sql(url, `TRUNCATE holdfast_${table}`);
  },
  async holdMigrations(url) {
    const connection = await createConnection({ uri: url });
    const hash = createHash("sha256")
      .update(`${new URL(url).pathname.slice(1)}/holdfast_`)
      .digest("hex");
    await connection.query("SELECT GET_LOCK(?, 1)", [`holdfast:${hash.slice(0, 40)}`]);
    return () => connection.end();
  },
  connections: async (url) => Number((await sql(url, `SELECT COUNT(*) AS number ${others}`))[0]?.["number"]),
};

sqlFaults("mysql", () => breakable);

it("gives growing tokens when the server's clock is behind what was given", async () => {
  const url = await database();
  const locks = await connect(mysqlBackend({ url }));
  onTestFinished(() => locks.close());
  await locks.request("job", () => {});
  await sql(url, "UPDATE holdfast_shards SET seq = seq + 3600000000");
  const first = await locks.request("job", (lock) => lock.token);
  const second = await locks.request("job", (lock) => lock.token);
  expect(second).toBe(first + 1n);
});

it("refuses on a server that is read-only, and works again afterwards", async () => {
  const url = await database();
  const name = new URL(url).pathname.slice(1);
  await sql(url, "CREATE USER IF NOT EXISTS plain@'127.0.0.1' IDENTIFIED BY 'secret'");
  await sql(url, `GRANT ALL ON ${name}.* TO plain@'127.0.0.1'`);
  const plain = Object.assign(new URL(url), { username: "plain", password: "secret" }).href;
  const locks = await connect(mysqlBackend({ url: plain }));
  onTestFinished(() => locks.close());
  const token = await locks.request("job", (lock) => lock.token);
  await sql(url, "SET GLOBAL read_only = 1");
  try {
    const error: unknown = await locks.tryAcquire("job").catch((reason: unknown) => reason);
    expect(hasCode(error, "LOCK_UNAVAILABLE")).toBe(true);
    expect(String(error)).toMatch(/read-only/);
  } finally {
    await sql(url, "SET GLOBAL read_only = 0");
  }
  expect(await locks.request("job", (lock) => lock.token)).toBeGreaterThan(token);
});

it("is not held up by the limits and defaults of the server", async () => {
  const settings = [
    ["completion_type", "CHAIN"],
    ["sql_safe_updates", "1"],
    ["autocommit", "0"],
    ["sql_mode", "ANSI,NO_BACKSLASH_ESCAPES"],
    ["max_statement_time", "0.2"],
  ];
  const odd = await startMysql({ settings: settings.map(([name, value]) => `${name}=${value}`) });
  onTestFinished(() => odd.server.remove());
  await sql(odd.url, "CREATE DATABASE odd");
  const url = odd.url.replace(/mysql$/, "odd");
  const all = await Promise.all(Array.from({ length: 6 }, () => connect(mysqlBackend({ url }))));
  onTestFinished(async () => void (await Promise.all(all.map((locks) => locks.close()))));
  let served = 0;
  await Promise.all(all.map((locks) => locks.request("job", () => void (served += 1))));
  expect(served).toBe(6);
  const holder = await all[0]?.acquire("job");
  expect(await all[1]?.request("job", { steal: true }, () => "stolen")).toBe("stolen");
  expect(await holder?.release()).toBe("gone");
});

it.each([{ rowsAsArray: true }, { nestTables: true }, { typeCast: false }, { namedPlaceholders: true }])(
  "reads the server's answers by itself, whatever the pool wants: %j",
  async (wish) => {
    const pool = createPool({ uri: await database(), ...wish });
    const locks = await connect(mysqlBackend({ pool }));
    onTestFinished(() => locks.close());
    const holder = await locks.acquire("job");
    const waiting = locks.request("job", () => "served");
    await expect.poll(async () => (await locks.query()).pending.length).toBe(1);
    await holder.release();
    expect(await waiting).toBe("served");
    await pool.end();
  },
);
