/** What `holdfast doctor` looks at in a PostgreSQL server; showing it is left to the CLI. */
import type { Finding } from "../../core/backend.ts";
import { finding } from "../../sql/finding.ts";
import { schemaVersion } from "../../sql/preparation.ts";
import { isPooled, type PgClient } from "./connection.ts";
import { currentVersion } from "./migrate.ts";
import { quoted } from "./statements.ts";

/** From which difference between the clocks people should know, in milliseconds. */
const clockMs = 1_000;

/** Looks at settings and state on which the promises rest, without changing anything. */
export async function examine(client: PgClient, schema: string): Promise<readonly Finding[]> {
  const { rows } = await client.query(`SELECT current_setting('server_version') AS version,
    current_setting('server_version_num')::int AS number, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS pages, current_setting('synchronous_commit') AS sync,
    current_setting('synchronous_standby_names') AS standbys, current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS replica, current_setting('transaction_read_only') AS read_only,
    current_setting('default_transaction_isolation') AS isolation,
    extract(epoch FROM clock_timestamp()) * 1000 AS clock, (SELECT count(*)::int FROM pg_stat_replication) AS replicas`);
  const seen = rows[0] ?? {};
  const aheadMs = Number(seen.clock) - Date.now();
  const findings: Finding[] = [
    versionFinding(String(seen.version), Number(seen.number)),
    finding(
      seen.fsync === "on" && seen.pages === "on",
      "problem",
      "fsync",
      `fsync ${seen.fsync}, full_page_writes ${seen.pages}`,
      "turn both on: a crash of the machine may lose or break what was granted",
    ),
    finding(
      seen.sync !== "off",
      "warning",
      "synchronous_commit",
      String(seen.sync),
      "nothing where connections are direct: holdfast turns it on for its own; behind a pooler, set it for the role",
    ),
    finding(
      seen.replica !== true && seen.read_only === "off",
      "problem",
      "primary",
      seen.replica === true ? "this server is a replica" : `transaction_read_only ${seen.read_only}`,
      "give the URL of the primary",
    ),
    finding(
      Number(seen.replicas) === 0 || seen.standbys !== "",
      "warning",
      "fail-over",
      `${seen.replicas} replicas, synchronous_standby_names ${JSON.stringify(seen.standbys)}`,
      "after a fail-over to an asynchronous replica two may hold, and tokens may go back: make one synchronous",
    ),
    finding(
      seen.encoding === "UTF8",
      "problem",
      "encoding",
      String(seen.encoding),
      "names need a database with encoding UTF8",
    ),
    finding(
      Math.abs(aheadMs) < clockMs,
      "warning",
      "clock",
      `${Math.round(aheadMs)} ms ahead of this machine's`,
      "none for locks, which live by the server's clock alone; but find out whose clock is wrong",
    ),
  ];
  const pooled = await isPooled(client);
  findings.push(
    finding(
      !pooled,
      "warning",
      "connection",
      pooled ? "through a pooler" : "direct",
      "in transaction mode waiters poll; give a direct URL for push",
    ),
  );
  if (pooled) {
    findings.push(
      finding(
        seen.isolation === "read committed",
        "problem",
        "isolation",
        String(seen.isolation),
        "ALTER ROLE … SET default_transaction_isolation = 'read committed'",
      ),
    );
  }
  return [...findings, ...(await schemaFindings(client, schema))];
}

function versionFinding(version: string, number: number): Finding {
  return finding(number >= 130_000, "warning", "version", version, "holdfast is tested on PostgreSQL 15");
}

async function schemaFindings(client: PgClient, schema: string): Promise<readonly Finding[]> {
  const version = await currentVersion(client, schema);
  const found = finding(
    version === schemaVersion,
    "problem",
    "schema",
    version === 0 ? "none" : `version ${version}`,
    "run: holdfast migrate --store URL",
  );
  if (version !== schemaVersion) return [found];
  const table = quoted(schema);
  const { rows } = await client.query(`SELECT count(*)::int AS entries,
    count(*) FILTER (WHERE expires_at < ${table}.now_us() - 120000000)::int AS expired,
    count(*) FILTER (WHERE expires_at > ${table}.now_us() + 86400000000)::int AS lasting FROM ${table}.entries`);
  const { entries, expired, lasting } = rows[0] ?? {};
  return [
    found,
    finding(
      expired === 0,
      "warning",
      "expired entries",
      `${expired} of ${entries} expired more than 2 minutes ago`,
      "none: the next client that lives for a minute takes them out",
    ),
    finding(
      lasting === 0,
      "warning",
      "lasting entries",
      `${lasting} of ${entries} live for more than a day`,
      "see who holds them, and whether the server's clock was set back: holdfast ls",
    ),
  ];
}
