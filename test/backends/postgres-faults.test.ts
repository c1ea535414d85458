/** The postgres backend while its server crashes, freezes, is cut off or becomes a replica; and why tokens come from a row. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, Pool } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startPostgres } from "../../scripts/lib/postgres-server.mjs";
import { postgresBackend } from "../../src/backends/postgres/index.ts";
import { connect } from "../../src/connect.ts";
import type { NewEntry } from "../../src/core/backend.ts";
import { hasCode } from "../../src/core/errors.ts";
import { sql } from "../helpers/postgres.ts";
import { type Breakable, sqlFaults, stopProcess, until } from "../helpers/sql-faults.ts";

const execute = promisify(execFile);

let started: Awaited<ReturnType<typeof startPostgres>>;
let databases = 0;

beforeAll(async () => {
  // What no commit has waited for stays in memory for long, so that a crash forgets it.
  started = await startPostgres({ settings: ["wal_writer_delay=10s", "autovacuum=off"] });
});

afterAll(() => started.server.remove());

async function database(): Promise<string> {
  const name = `d${++databases}`;
  await sql(started.url, `CREATE DATABASE ${name} TEMPLATE template0`);
  return started.url.replace(/postgres$/, name);
}

/** The server and the processes that serve its connections. */
async function pids(): Promise<readonly number[]> {
  const pid = String(started.server.pid);
  const { stdout } = await execute("pgrep", ["-P", pid]);
  return [pid, ...stdout.trim().split("\n")].map(Number);
}

const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

const breakable: Breakable = {
  open: (opening) => postgresBackend(opening),
  database,
  async openOnExhaustedPool(url) {
    const pool = new Pool({ connectionString: url, max: 2 });
    const borrowed = [await pool.connect(), await pool.connect()];
    return {
      backend: postgresBackend({ pool }),
      async giveBack() {
        for (const client of borrowed) client.release();
        await pool.end();
      },
    };
  },
  get port() {
    return started.port;
  },
  kill: () => started.server.kill(),
  start: () => started.server.start(),
  freeze: async () => void (await Promise.all((await pids()).map(stopProcess))),
  thaw: async () => (await pids()).forEach((pid) => process.kill(pid, "SIGCONT")),
  cut: async (url) => void (await sql(url, `SELECT pg_terminate_backend(pid) ${others}`)),
  dropTables: async (url) => void (await sql(url, "DROP SCHEMA holdfast CASCADE")),
  emptyTables: async (url) => void (await sql(url, "TRUNCATE holdfast.shards, holdfast.entries")),
  async holdMigrations(url) {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query("SELECT pg_advisory_lock(hashtextextended('holdfast migration of holdfast', 0))");
    return () => client.end();
  },
  connections: async (url) => Number((await sql(url, `SELECT count(*) AS number ${others}`))[0]?.["number"]),
};

sqlFaults("postgres", () => breakable);

// An immediate shutdown forgets what no commit has waited for.
it("loses a release in a crash at worst: the lock is free at the end of its ttl", async () => {
  const locks = await connect(postgresBackend({ url: await database() }));
  onTestFinished(() => locks.close());
  const lock = await locks.acquire("job", { ttl: "2s" });
  expect(await lock.release()).toBe("released");
  await started.server.stop("SIGQUIT");
  await started.server.start();
  const next = await locks.acquire("job", { wait: "5s" });
  expect(next.token).toBeGreaterThan(lock.token);
});

it("keeps a waiter over a crash right after its append was answered", async () => {
  const url = await database();
  const client = postgresBackend({ url });
  onTestFinished(() => client.close());
  const entry = (id: string): NewEntry => {
    const owner = { client: "c", host: "h", pid: 1 };
    return { id, owner, mode: "write", weight: 1, ttlMs: 60_000 };
  };
  const joined = [];
  for (const id of ["holder", "waiter"]) joined.push(await client.append("job", entry(id)));
  joined.push(...(await Promise.all(["third", "fourth"].map((id) => client.append("job", entry(id))))));
  await started.server.stop("SIGQUIT");
  await started.server.start();
  await until(async () => (await client.list("job").catch(() => null)) !== null);
  const left = await client.list("job");
  expect(left.map(({ id, seq }) => [id, seq])).toEqual(joined.map((each) => [each?.self.id, each?.self.seq]));
});

it("a renewal that meets an eviction under way says that it was one", async () => {
  const url = await database();
  const [client, thief] = [postgresBackend({ url }), new Client({ connectionString: url })];
  onTestFinished(async () => void (await Promise.all([client.close(), thief.end()])));
  const owner = { client: "c", host: "h", pid: 1 };
  const ttlMs = 60_000;
  const joined = await client.append("job", { id: "holder", owner, mode: "write", weight: 1, ttlMs });
  const seq = joined?.self.seq ?? 0n;
  await thief.connect();
  await thief.query("BEGIN");
  await thief.query("SELECT holdfast.remove('job', 'holder', true, $1)", [seq]);
  const renewed = client.renew([{ queue: "job", id: "holder", seq, ttlMs }]);
  await until(async () => (await sql(url, `SELECT 1 ${others} AND wait_event_type = 'Lock'`)).length === 1);
  await thief.query("COMMIT");
  expect(await renewed).toEqual([{ outcome: "gone", evicted: true }]);
});

it("a waiter that is evicted before its append was answered joins again at once", async () => {
  const url = await database();
  const [locks, thief] = [await connect(postgresBackend({ url })), await connect(postgresBackend({ url }))];
  onTestFinished(async () => void (await Promise.all([locks.close(), thief.close()])));
  await thief.request("other", () => {});
  const holder = await locks.acquire("job", { ttl: "10m" });
  await until(async () => (await sql(url, `SELECT 1 ${others} AND query LIKE 'LISTEN%'`)).length === 2);
  // A disk that is slow: others see the waiter before it knows that it waits.
  await sql(
    url,
    `CREATE OR REPLACE FUNCTION holdfast.flush(requests jsonb) RETURNS jsonb LANGUAGE sql VOLATILE
      AS $$ SELECT jsonb_build_array(pg_sleep(0.5) IS NOT NULL) $$`,
  );
  const waiting = locks.request("job", { ttl: "10m" }, (lock) => lock.token);
  await until(async () => (await thief.query()).pending.length === 1);
  const stolen = await thief.request("job", { steal: true }, (lock) => lock.token);
  expect(await waiting).toBeGreaterThan(stolen);
  // It is told by a message of its own.
  await expect.poll(() => holder.held).toBe(false);
});

// Why seq comes from a row: a sequence writes its log ahead, and a crash may forget it all.
it("a bare sequence goes back after a crash, and the tokens of locks do not", async () => {
  const url = await database();
  const locks = await connect(postgresBackend({ url }));
  onTestFinished(() => locks.close());
  const token = await locks.request("job", (lock) => lock.token);
  await sql(url, "CREATE SEQUENCE s CACHE 1");
  await sql(url, "CHECKPOINT");
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  // It writes every ten seconds, and one of these moments may be now.
  const [writer] = await sql(url, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
  await stopProcess(Number(writer?.["pid"]));
  await client.query("BEGIN");
  await client.query("SELECT nextval('s')");
  await client.query("ROLLBACK");
  const given: number[] = [];
  for (let turn = 0; turn < 2; turn++)
    given.push(Number((await client.query("SELECT nextval('s')")).rows[0]?.nextval));
  expect(given).toEqual([2, 3]);
  // As it stands: before a server is stopped it would go on.
  process.kill(Number(writer?.["pid"]), "SIGKILL");
  await started.server.kill();
  await started.server.start();
  expect(await sql(url, "SELECT nextval('s')")).toEqual([{ nextval: "1" }]);
  expect(await locks.request("job", (lock) => lock.token)).toBeGreaterThan(token);
});

it("gives growing tokens when the server's clock goes back, and keeps those out who would come too early", async () => {
  const url = await database();
  const locks = await connect(postgresBackend({ url }));
  onTestFinished(() => locks.close());
  const first = await locks.request("job", (lock) => lock.token);
  await sql(
    url,
    `CREATE OR REPLACE FUNCTION holdfast.now_us() RETURNS bigint LANGUAGE sql VOLATILE
      AS $$ SELECT (extract(epoch FROM clock_timestamp() - interval '1 hour') * 1000000)::bigint $$`,
  );
  const second = await locks.acquire("job");
  expect(second.token).toBe(first + 1n);
  expect(await locks.tryAcquire("job")).toBe(null);
  await second.release();
});

it("refuses on a replica, and works again once that was promoted", async () => {
  const url = await database();
  const locks = await connect(postgresBackend({ url }));
  onTestFinished(() => locks.close());
  const token = await locks.request("job", (lock) => lock.token);
  await started.server.stop("SIGINT");
  await writeFile(join(started.server.folder, "data", "standby.signal"), "");
  await started.server.start();
  await until(async () => (await locks.query().catch(() => null)) !== null);
  const error: unknown = await locks.tryAcquire("job").catch((reason: unknown) => reason);
  expect(hasCode(error, "LOCK_UNAVAILABLE")).toBe(true);
  expect(String(error)).toMatch(/read-only/);
  await sql(started.url, "SELECT pg_promote()");
  expect(await locks.request("job", (lock) => lock.token)).toBeGreaterThan(token);
});

it("is not held up by the limits and defaults of its role", async () => {
  const url = await database();
  const settings = [
    "lock_timeout = '1ms'",
    "statement_timeout = '5ms'",
    "idle_in_transaction_session_timeout = '1ms'",
    "default_transaction_isolation = 'serializable'",
    "search_path = ''",
  ];
  await sql(url, "CREATE ROLE limited LOGIN");
  for (const setting of settings) await sql(url, `ALTER ROLE limited SET ${setting}`);
  // Somebody else has made the schema, and the role may make nothing beside it.
  await sql(url, "CREATE SCHEMA holdfast AUTHORIZATION limited");
  const limited = Object.assign(new URL(url), { username: "limited" }).href;
  const clients = Array.from({ length: 6 }, () => postgresBackend({ url: limited }));
  onTestFinished(async () => void (await Promise.all(clients.map((client) => client.close()))));
  const all = await Promise.all(clients.map((client) => connect(client)));
  let served = 0;
  await Promise.all(all.map((locks) => locks.request("job", () => void (served += 1))));
  expect(served).toBe(6);
});

it("reads the server's answers by itself, whatever the pool has values parsed to", async () => {
  const pool = new Pool({
    connectionString: await database(),
    types: { getTypeParser: () => (text: string) => `"${text}"` },
  });
  const locks = await connect(postgresBackend({ pool }));
  onTestFinished(() => locks.close());
  const holder = await locks.acquire("job");
  const waiting = locks.request("job", () => "served");
  await until(async () => (await locks.query()).pending.length === 1);
  await holder.release();
  expect(await waiting).toBe("served");
  await pool.end();
});

it("understands a server that speaks another language", async () => {
  const german = await startPostgres({
    settings: ["lc_messages=C.utf8"],
    env: { LC_ALL: "C.utf8", LANGUAGE: "de" },
  });
  onTestFinished(() => german.server.remove());
  const locks = await connect(postgresBackend({ url: german.url }));
  onTestFinished(() => locks.close());
  await locks.request("job", () => {});
  await sql(german.url, "ALTER DATABASE postgres SET default_transaction_read_only = on");
  await sql(german.url, `SELECT pg_terminate_backend(pid) ${others}`);
  await until(() =>
    locks.query().then(
      () => true,
      () => false,
    ),
  );
  // Refused, and surely not done.
  await expect(locks.tryAcquire("job")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
});
