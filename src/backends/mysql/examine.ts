/** What `holdfast doctor` looks at in a MySQL or MariaDB server; showing it is left to the CLI. */
import type { Finding } from "../../core/backend.ts";
import { finding } from "../../sql/finding.ts";
import { schemaVersion } from "../../sql/preparation.ts";
import { type MysqlConnection, rowsOf } from "./connection.ts";
import { currentVersion } from "./migrate.ts";

/** From which difference between the clocks people should know, in milliseconds. */
const clockMs = 1_000;

/** Looks at settings and state on which the promises rest, without changing anything. */
export async function examine(connection: MysqlConnection, prefix: string): Promise<readonly Finding[]> {
  const [seen] = await rowsOf(
    connection,
    `SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flush, @@read_only AS read_only, @@log_bin AS log_bin,
      @@binlog_format AS binlog_format, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000 AS clock`,
  );
  const of = (key: string): string => String(seen?.[key]);
  const aheadMs = Number(seen?.["clock"]) - Date.now();
  const logged = of("log_bin") === "1";
  return [
    { level: "ok", about: "version", seen: of("version") },
    finding(
      of("flush") === "1",
      "problem",
      "innodb_flush_log_at_trx_commit",
      of("flush"),
      "set it to 1: a crash of the machine may lose what was granted",
    ),
    finding(
      of("read_only") === "0",
      "problem",
      "primary",
      `read_only ${of("read_only")}`,
      "give the URL of the primary",
    ),
    finding(
      !logged || of("binlog_format") !== "STATEMENT",
      "problem",
      "binlog_format",
      of("binlog_format"),
      "set it to ROW or MIXED: READ COMMITTED cannot be logged as statements",
    ),
    finding(
      !logged,
      "warning",
      "fail-over",
      logged ? "there is a binary log, so maybe replicas" : "no binary log",
      "after a fail-over to an asynchronous replica two may hold, and tokens may go back",
    ),
    finding(
      Math.abs(aheadMs) < clockMs,
      "warning",
      "clock",
      `${Math.round(aheadMs)} ms ahead of this machine's`,
      "none for locks, which live by the server's clock alone; but find out whose clock is wrong",
    ),
    ...(await schemaFindings(connection, prefix)),
  ];
}

async function schemaFindings(connection: MysqlConnection, prefix: string): Promise<readonly Finding[]> {
  const version = await currentVersion(connection, prefix);
  const found = finding(
    version === schemaVersion,
    "problem",
    "schema",
    version === 0 ? "none" : `version ${version}`,
    "run: holdfast migrate --store URL",
  );
  if (version !== schemaVersion) return [found];
  const [row] = await rowsOf(
    connection,
    `SELECT COUNT(*) AS entries, COALESCE(SUM(left_us < -120000000), 0) AS expired, COALESCE(SUM(left_us > 86400000000), 0) AS lasting
      FROM (SELECT expires_at - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS left_us FROM \`${prefix}entries\`) AS lives`,
  );
  const of = (key: string): string => String(row?.[key]);
  return [
    found,
    finding(
      of("expired") === "0",
      "warning",
      "expired entries",
      `${of("expired")} of ${of("entries")} expired more than 2 minutes ago`,
      "none: the next client that lives for a minute takes them out",
    ),
    finding(
      of("lasting") === "0",
      "warning",
      "lasting entries",
      `${of("lasting")} of ${of("entries")} live for more than a day`,
      "see who holds them, and whether the server's clock was set back: holdfast ls",
    ),
  ];
}
