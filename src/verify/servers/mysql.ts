/** A throwaway MariaDB: its folder, its settings and how to reach it; running it is left to server-process.ts. */
import { join } from "node:path";
import type { DatabaseOptions, StartedDatabase } from "./postgres.ts";
import { answers, locate, mustRunAs } from "./programs.ts";
import { freePorts, makeFolder, startServer } from "./server-process.ts";

/** Starts an empty server. */
export async function startMysql(options: DatabaseOptions = {}): Promise<StartedDatabase> {
  const { durable = false, settings = [], env } = options;
  const [folder, [port = 0]] = [await makeFolder("mysql"), await freePorts(1)];
  const data = join(folder, "data");
  const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];
  await mustRunAs({}, folder, await locate("mariadb-install-db"), [
    "--no-defaults",
    ...asRoot,
    `--datadir=${data}`,
    "--auth-root-authentication-method=normal",
    "--skip-test-db",
    "--skip-log-bin",
  ]);
  const server = await startServer({
    name: "mysql",
    command: await locate("mariadbd"),
    args: [
      "--no-defaults",
      ...asRoot,
      `--datadir=${data}`,
      `--socket=${join(folder, "s.sock")}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      `--pid-file=${join(folder, "my.pid")}`,
      "--innodb-buffer-pool-size=64M",
      "--skip-log-bin",
      "--max-connections=300",
      ...(durable ? [] : ["--innodb-flush-log-at-trx-commit=2"]),
      ...settings.map((setting) => `--${setting}`),
    ],
    folder,
    ...(env === undefined ? {} : { env: { ...process.env, ...env } }),
    // It greets whoever connects.
    ready: () => answers(port),
  });
  return { server, port, url: `mysql://root@127.0.0.1:${port}/mysql` };
}
