/** Locks in PostgreSQL with its default durability: holdfast against bare statements, advisory locks with a connection per waiter, and Verrou. */
import { Client, Pool } from "pg";
import { startPostgres } from "../../scripts/lib/postgres-server.mjs";
import { holdfast, measurements, metrics, ratios, verrou } from "../sql.mjs";

/** @import { Suite } from "../types.ts" */
/** @import { Subject } from "../sql.mjs" */

/** @type {Map<string, Awaited<ReturnType<typeof startPostgres>>["server"]>} */
const servers = new Map();

/** @type {Suite<Subject, { url: string }>} */
export const suite = {
  name: "postgres",
  floor: "floor",
  quickRounds: 2,
  metrics,
  measurements,
  ratios,

  async setup() {
    const { url, server } = await startPostgres({ durable: true });
    servers.set(url, server);
    const client = new Client(url);
    await client.connect();
    await client.query(
      "CREATE TABLE floor (name text PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL)",
    );
    await client.end();
    return { url };
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
        const pool = new Pool({ connectionString: url, max: 10 });
        return {
          pair: async (name) => {
            await pool.query({
              name: "take",
              text: "INSERT INTO floor VALUES ($1, $2, now() + interval '30 s') ON CONFLICT (name) DO NOTHING",
              values: [name, "owner"],
            });
            await pool.query({
              name: "leave",
              text: "DELETE FROM floor WHERE name = $1 AND owner = $2",
              values: [name, "owner"],
            });
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
        const pool = new Pool({ connectionString: url, max: 40 });
        /** @param {string} name @param {() => Promise<void>} run */
        const request = async (name, run) => {
          const client = await pool.connect();
          try {
            await client.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", [name]);
            await run();
            await client.query("SELECT pg_advisory_unlock(hashtextextended($1, 0))", [name]);
          } finally {
            client.release();
          }
        };
        return { request, pair: (name) => request(name, async () => {}) };
      },
    },
    verrou("pg"),
  ],
};

/** @param {string} url */
async function countConnections(url) {
  const client = new Client(url);
  await client.connect();
  const { rows } = await client.query(
    "SELECT count(*)::int AS number FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
  );
  await client.end();
  return Number(rows[0].number);
}
