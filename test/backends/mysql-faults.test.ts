/** The mysql backend while its server crashes, freezes, cuts connections or refuses to write. */
import { createPool } from "mysql2/promise";
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
