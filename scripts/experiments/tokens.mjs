/** Experiment f: numbers that PostgreSQL gave out before a crash, and those that it gives after it. */
import { Client } from "pg";
import { connect } from "../../dist/connect.js";
import { startPostgres } from "../../dist/verify/servers/postgres.js";
import { keepHistory } from "./stage.mjs";

/** @typedef {import("./report.mjs").Row} Row */
/** @typedef {{ sequence: bigint, row: bigint, holdfast: bigint }} Given the last number of each kind */

/**
 * f: a bare sequence, a committed row, and the tokens of our own locks, over a crash.
 *
 * @param {import("./report.mjs").Context} context
 * @returns {Promise<Row[]>}
 */
export async function f({ rounds }) {
  const { server, url } = await startPostgres({ durable: true });
  /** @type {{ before: Given, after: Given }[]} */
  const history = [];
  try {
    const locks = await connect(url);
    await (await locks.acquire("f")).release();
    await locks.close();
    for (let round = 0; round < rounds; round += 1) {
      const before = await giveOut(url, round);
      // What pg_ctl calls immediate: no checkpoint, and what was not written is gone.
      await server.stop("SIGQUIT");
      await server.start();
      history.push({ before, after: await goOn(url, round) });
      if (process.stderr.isTTY) process.stderr.write(`\r${round + 1} of ${rounds} rounds `);
    }
  } finally {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
    await server.remove();
  }
  const rowOf = async (/** @type {string} */ label, /** @type {keyof Given} */ which) => {
    const given = history.map(({ before, after }) => ({ before: before[which], after: after[which] }));
    const lines = given.map(({ before, after }) => `{"before":"${before}","after":"${after}"}\n`);
    const sha256 = await keepHistory(`f-${which}`, lines.join(""));
    const tokensBack = given.filter(({ before, after }) => after <= before).length;
    return { label, rounds, ttlMs: 0, tokensBack, sha256, extra: {} };
  };
  return [
    await rowOf("a bare sequence, after a call that was rolled back", "sequence"),
    await rowOf("a row that is counted up and committed", "row"),
    await rowOf("holdfast on PostgreSQL", "holdfast"),
  ];
}

/** @param {string} url @param {number} round */
async function giveOut(url, round) {
  const client = new Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query(`CREATE SEQUENCE s${round} CACHE 1`);
  await client.query(`CREATE TABLE t${round} (n bigint); INSERT INTO t${round} VALUES (0)`);
  let row = 0n;
  for (let turn = 0; turn < 3; turn += 1) {
    row = BigInt((await client.query(`UPDATE t${round} SET n = n + 1 RETURNING n`)).rows[0].n);
  }
  const locks = await connect(url);
  const lock = await locks.acquire("f", { ttl: "1s" });
  await lock.release();
  await locks.close();
  // The sequence comes last: a commit of anything else would bring its record to the disk.
  await client.query("CHECKPOINT");
  await client.query("BEGIN");
  await client.query(`SELECT nextval('s${round}')`);
  await client.query("ROLLBACK");
  await client.query(`SELECT nextval('s${round}')`);
  const last = await client.query(`SELECT nextval('s${round}') AS n`);
  void client.end().catch(() => {});
  return { sequence: BigInt(last.rows[0].n), row, holdfast: lock.token };
}

/** @param {string} url @param {number} round */
async function goOn(url, round) {
  const client = new Client(url);
  client.on("error", () => {});
  await client.connect();
  const sequence = BigInt((await client.query(`SELECT nextval('s${round}') AS n`)).rows[0].n);
  const row = BigInt((await client.query(`UPDATE t${round} SET n = n + 1 RETURNING n`)).rows[0].n);
  await client.query(`DROP SEQUENCE s${round}; DROP TABLE t${round}`);
  await client.end();
  const locks = await connect(url);
  const lock = await locks.acquire("f", { ttl: "1s", wait: "5s" });
  await lock.release();
  await locks.close();
  return { sequence, row, holdfast: lock.token };
}
