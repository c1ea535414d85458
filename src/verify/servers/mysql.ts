/** A throwaway MariaDB: its folder, its settings and how to reach it; running it is left to server-process.ts. */
import { join } from "node:path";
import type { DatabaseOptions, StartedDatabase } from "./postgres.ts";
import { answers, locate, mustRunAs } from "./programs.ts";
import { freePorts, makeFolder, startServer } from "./server-process.ts";

/** Settings of a server whose machine is never expected to crash: killing its process loses nothing all the same. */
export const hasty: readonly string[] = [
  "--innodb-flush-log-at-trx-commit=2",
  "--innodb-flush-method=nosync",
  "--skip-innodb-doublewrite",
];

/** Starts an empty MariaDB. */
export async function startMysql(options: DatabaseOptions = {}): Promise<StartedDatabase> {
  const { durable = false, settings = [], env } = options;
  const folder = await makeFolder("mysql");
  const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];
  const speed = durable ? [] : [...hasty, "--debug-no-sync", "--innodb-log-file-size=16M"];
  const data = `--datadir=${join(folder, "data")}`;
  // A server that starts takes away the temporary files that it finds, also those that others are using: so it has a place of its own.
  const temporary = `--tmpdir=${folder}`;
  const common = ["--no-defaults", ...asRoot, data, temporary, ...speed, "--skip-log-bin"];
  const normal = ["--auth-root-authentication-method=normal", "--skip-test-db"];
  await mustRunAs({}, folder, await locate("mariadb-install-db"), [...common, ...normal]);
  const args = [...common, ...settings.map((setting) => `--${setting}`)];
  return serveMysql({ name: "mysql", folder, command: await locate("mariadbd"), args, env });
}

/** Starts a server of MariaDB or MySQL whose data is in a folder already. */
export async function serveMysql(program: {
  readonly name: string;
  readonly folder: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv | undefined;
}): Promise<StartedDatabase> {
  const { name, folder, command, args, env } = program;
  const [port = 0] = await freePorts(1);
  const server = await startServer({
    name,
    command,
    args: [
      ...args,
      `--socket=${join(folder, "s.sock")}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      `--pid-file=${join(folder, "my.pid")}`,
      "--innodb-buffer-pool-size=64M",
      "--max-connections=300",
    ],
    folder,
    ...(env === undefined ? {} : { env: { ...process.env, ...env } }),
    // It greets whoever connects.
    ready: () => answers(port),
  });
  return { server, port, url: `mysql://root@127.0.0.1:${port}/mysql` };
}
