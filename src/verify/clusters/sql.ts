/** One PostgreSQL, one MariaDB: killed, paused, and told another time. */
import { ClockShim } from "../servers/clock-shim.ts";
import { startMysql } from "../servers/mysql.ts";
import {
  type DatabaseOptions,
  postgresFolders,
  type StartedDatabase,
  startPostgres,
} from "../servers/postgres.ts";
import { locate, versionOf } from "../servers/programs.ts";
import { clockFaults, type Cluster, serverKill, serverPause } from "./cluster.ts";

/** A PostgreSQL. */
export async function postgresCluster(): Promise<Cluster> {
  const program = await locate("postgres", postgresFolders);
  const version = await versionOf(program, ["--version"]);
  return database(
    "postgres",
    startPostgres,
    version.replace(/^.*?\(PostgreSQL\) ([\d.]+).*$/, "PostgreSQL $1"),
  );
}

/** A MariaDB. */
export async function mysqlCluster(): Promise<Cluster> {
  const version = await versionOf(await locate("mariadbd"), ["--version"]);
  return database("mysql", startMysql, version.replace(/^.*Ver ([\d.]+)-MariaDB.*$/, "MariaDB $1"));
}

async function database(
  name: string,
  start: (options: DatabaseOptions) => Promise<StartedDatabase>,
  version: string,
): Promise<Cluster> {
  const shim = await ClockShim.build();
  const { server, url } = await start(shim === null ? {} : { env: shim.env });
  const servers = [[name, server]] as const;
  const clock = clockFaults([[name, shim]]);
  return {
    url,
    version,
    faults: [serverPause(servers), serverKill(servers), ...clock.faults],
    impossible: clock.impossible,
    usual: ["server-pause", "server-kill"],
    stop: async () => {
      await server.remove();
      await shim?.remove();
    },
  };
}
