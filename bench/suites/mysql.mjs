/** Locks in MariaDB with its default durability: holdfast against bare statements, GET_LOCK with a connection per waiter, and Verrou. */
import { createConnection, createPool } from "mysql2/promise";
import { startMysql } from "../../scripts/lib/mysql-server.mjs";
import { holdfast, measurements, metrics, ratios, verrou } from "../sql.mjs";

/** @import { Suite } from "../types.ts" */
/** @import { Subject } from "../sql.mjs" */

/** What the laws demand of an append at least: a counter that was committed, an entry, and a look between the two. */
const least = [
  "CREATE TABLE least_counter (shard INT PRIMARY KEY, seq BIGINT NOT NULL)",
  "INSERT INTO least_counter VALUES (1, 0)",
  "CREATE TABLE least_entries (name VARBINARY(255), seq BIGINT, owner VARBINARY(64), expires_at BIGINT, PRIMARY KEY (name, seq))",
  `CREATE PROCEDURE least_take (IN the_name VARBINARY(255), IN the_owner VARBINARY(64)) BEGIN
    DECLARE first_seq BIGINT;
    START TRANSACTION;
    UPDATE least_counter SET seq = LAST_INSERT_ID(GREATEST(seq + 1, UNIX_TIMESTAMP() * 1000000)) WHERE shard = 1;
    SELECT MIN(seq) INTO first_seq FROM least_entries WHERE name = the_name;
    INSERT INTO least_entries VALUES (the_name, LAST_INSERT_ID(), the_owner, UNIX_TIMESTAMP() + 30);
    COMMIT;
    SELECT CAST(LAST_INSERT_ID() AS CHAR) AS seq, first_seq;
  END`,
];

/** @type {Map<string, Awaited<ReturnType<typeof startMysql>>["server"]>} */
const servers = new Map();

/** @type {Suite<Subject, { url: string }>} */
export const suite = {
  name: "mysql",
  floor: "floor",
  quickRounds: 2,
  metrics,
  measurements,
  ratios: {
    ...ratios,
    least_pair_p50_vs_floor: {
      of: { contender: "least", metric: "pair_us" },
      to: [{ contender: "floor", metric: "pair_us" }],
      fullOnly: true,
    },
  },

  async setup() {
    const { url, server } = await startMysql({ durable: true });
    const connection = await createConnection({ uri: url });
    await connection.query("CREATE DATABASE bench");
    await connection.query(
      "CREATE TABLE bench.floor (name VARCHAR(255) PRIMARY KEY, owner VARCHAR(64), expires_at DATETIME(6))",
    );
    await connection.query("USE bench");
    for (const statement of least) await connection.query(statement);
    await connection.end();
    const bench = url.replace(/mysql$/, "bench");
    servers.set(bench, server);
    return { url: bench };
  },
  async teardown({ url }) {
    await servers.get(url)?.remove();
  },

  contenders: [
    holdfast(countConnections),
    {
      name: "floor",
      measurements: ["pair"],
      fullOnly: ["pairs16"],
      async open({ url }) {
        const pool = createPool({ uri: url, connectionLimit: 10 });
        return {
          pair: async (name) => {
            await pool.execute("INSERT IGNORE INTO floor VALUES (?, ?, NOW(6) + INTERVAL 30 SECOND)", [
              name,
              "owner",
            ]);
            await pool.execute("DELETE FROM floor WHERE name = ? AND owner = ?", [name, "owner"]);
          },
        };
      },
    },
    {
      name: "advisory",
      measurements: ["gap"],
      onceInQuick: ["gap"],
      fullOnly: ["pair", "handoffs"],
      async open({ url }) {
        const pool = createPool({ uri: url, connectionLimit: 40 });
        /** @param {string} name @param {() => Promise<void>} run */
        const request = async (name, run) => {
          const connection = await pool.getConnection();
          try {
            await connection.execute("SELECT GET_LOCK(?, 60)", [name]);
            await run();
            await connection.execute("SELECT RELEASE_LOCK(?)", [name]);
          } finally {
            connection.release();
          }
        };
        return { request, pair: (name) => request(name, async () => {}) };
      },
    },
    {
      name: "least",
      measurements: [],
      fullOnly: ["pair"],
      async open({ url }) {
        const connection = await createConnection({ uri: url });
        return {
          pair: async (name) => {
            const [results] = await connection.execute("CALL least_take(?, ?)", [name, "owner"]);
            const [row] = Array.isArray(results) && Array.isArray(results[0]) ? results[0] : [];
            await connection.execute("DELETE FROM least_entries WHERE name = ? AND seq = ? AND owner = ?", [
              name,
              String(Reflect.get(Object(row), "seq")),
              "owner",
            ]);
          },
        };
      },
    },
    verrou("mysql2"),
  ],
};

/** @param {string} url */
async function countConnections(url) {
  const connection = await createConnection({ uri: url });
  const [rows] = await connection.query(
    "SELECT COUNT(*) AS number FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
  );
  await connection.end();
  return Array.isArray(rows) && rows[0] !== undefined ? Number(Reflect.get(rows[0], "number")) : Number.NaN;
}
