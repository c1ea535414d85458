/** Locks in MariaDB with its default durability: holdfast against bare statements, GET_LOCK with a connection per waiter, and Verrou. */
import { createConnection, createPool } from "mysql2/promise";
import { startMysql } from "../../scripts/lib/mysql-server.mjs";
import { holdfast, measurements, metrics, ratios, verrou } from "../sql.mjs";

/** @import { Suite } from "../types.ts" */
/** @import { Subject } from "../sql.mjs" */

/** @type {Map<string, Awaited<ReturnType<typeof startMysql>>["server"]>} */
const servers = new Map();

/** @type {Suite<Subject, { url: string }>} */
export const suite = {
  name: "mysql",
  floor: "floor",
  metrics,
  measurements,
  ratios,

  async setup() {
    const { url, server } = await startMysql({ durable: true });
    const connection = await createConnection({ uri: url });
    await connection.query("CREATE DATABASE bench");
    await connection.query(
      "CREATE TABLE bench.floor (name VARCHAR(255) PRIMARY KEY, owner VARCHAR(64), expires_at DATETIME(6))",
    );
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
      measurements: ["pair", "pairs16", "connections"],
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
          request: (_name, run) => run(),
          connections: async () => 1,
        };
      },
    },
    {
      name: "advisory",
      measurements: ["pair", "gap", "handoffs"],
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
