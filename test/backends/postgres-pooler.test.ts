/** The postgres backend behind PgBouncer: in transaction mode waiters poll, in session mode they are told. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startPgbouncer, startPostgres } from "../../scripts/lib/postgres-server.mjs";
import { postgresBackend, sessionLock } from "../../src/backends/postgres/index.ts";
import { connect } from "../../src/connect.ts";
import { until } from "../helpers/sql-faults.ts";
import { Client } from "pg";

let postgres: Awaited<ReturnType<typeof startPostgres>>;

beforeAll(async () => {
  postgres = await startPostgres();
});

afterAll(() => postgres.server.remove());

describe.each(["transaction", "session"] as const)("PgBouncer in %s mode", (mode) => {
  let pooler: Awaited<ReturnType<typeof startPgbouncer>>;
  let url = "";

  beforeAll(async () => {
    pooler = await startPgbouncer(postgres.port, mode);
    url = `postgres://postgres@127.0.0.1:${pooler.port}/postgres`;
  });

  afterAll(() => pooler.server.remove());

  it("locks work, in order, and the trait says how waiters wake", async () => {
    const warnings: string[] = [];
    const listen = (warning: Error): void => void warnings.push(String(Reflect.get(warning, "code")));
    process.on("warning", listen);
    onTestFinished(() => void process.off("warning", listen));
    const backends = [postgresBackend({ url, schema: mode }), postgresBackend({ url, schema: mode })];
    const [a, b] = await Promise.all(backends.map((backend) => connect(backend)));
    if (a === undefined || b === undefined) throw new Error("two clients were asked for");
    onTestFinished(async () => void (await Promise.all([a.close(), b.close()])));
    const holder = await a.acquire("job");
    const order: number[] = [];
    const waiters: Array<Promise<unknown>> = [];
    for (let turn = 0; turn < 6; turn++) {
      waiters.push((turn % 2 === 0 ? a : b).request("job", () => order.push(turn)));
      await until(async () => (await b.query()).pending.length === turn + 1);
    }
    const wake = mode === "transaction" ? "poll" : "push";
    await until(() => backends.every(({ traits }) => traits.wake === wake));
    expect(await holder.release()).toBe("released");
    await Promise.all(waiters);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(warnings.includes("HOLDFAST_POLLING")).toBe(mode === "transaction");
    const pooled = (await backends[0]?.examine())?.find(({ about }) => about === "connection");
    expect(pooled).toMatchObject({ level: "warning", seen: "through a pooler" });
  });
});

it("a session's lock is refused where a pooler swaps the connection", async () => {
  const pooler = await startPgbouncer(postgres.port, "transaction");
  onTestFinished(() => pooler.server.remove());
  const url = `postgres://postgres@127.0.0.1:${pooler.port}/postgres`;
  const [client, other] = [new Client(url), new Client(url)];
  await client.connect();
  await other.connect();
  const held = await sessionLock(client, "job");
  // Somebody else's transaction takes the server process that has the lock.
  await other.query("BEGIN");
  await expect(held?.release()).rejects.toThrow(/pooler swaps/);
  await other.query("ROLLBACK");
  await client.end();
  await other.end();
});
