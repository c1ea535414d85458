/** A throwaway PostgreSQL: its folder, its settings and how to reach it; running it is left to server-process.ts. */
import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { answers, locate, mustRunAs, type User, userOf } from "./programs.ts";
import { freePorts, makeFolder, type ServerProcess, startServer } from "./server-process.ts";

/** A server and where it listens. */
export interface StartedDatabase {
  readonly server: ServerProcess;
  readonly port: number;
  readonly url: string;
}

/** How a database is run. */
export interface DatabaseOptions {
  /** As it comes, with fsync. */
  readonly durable?: boolean;
  readonly settings?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Settings of a server whose machine is never expected to crash: killing its process loses nothing all the same. */
const hasty = ["-c", "fsync=off", "-c", "full_page_writes=off"];

/** Where Debian keeps the programs. */
export const postgresFolders: readonly string[] = ["/usr/lib/postgresql/*/bin"];

/** Starts an empty server. It refuses to run as root, so that root runs it as the user `postgres`. */
export async function startPostgres(options: DatabaseOptions = {}): Promise<StartedDatabase> {
  const { durable = false, settings = [], env } = options;
  const user = await userOf("postgres");
  const [folder, [port = 0]] = [await ownFolder("postgres", user), await freePorts(1)];
  const data = join(folder, "data");
  await mustRunAs(user, folder, await locate("initdb", postgresFolders), initArgs(data));
  const server = await startServer({
    name: "postgres",
    command: await locate("postgres", postgresFolders),
    args: [
      ...serveArgs(data, folder, port),
      ...(durable ? [] : hasty),
      ...settings.flatMap((setting) => ["-c", setting]),
    ],
    folder,
    ...user,
    env: { ...process.env, LC_ALL: "C", ...env },
    // Whoever may log in is answered with R; while it recovers, with an error.
    ready: () => answers(port, startup(), "R"),
  });
  return { server, port, url: `postgres://postgres@127.0.0.1:${port}/postgres` };
}

/** Starts a PgBouncer in front of a throwaway server, for all of its databases. */
export async function startPgbouncer(
  serverPort: number,
  mode: "transaction" | "session",
): Promise<Pick<StartedDatabase, "server" | "port">> {
  const user = await userOf("postgres");
  const [folder, [port = 0]] = [await ownFolder("pgbouncer", user), await freePorts(1)];
  const config = join(folder, "pgbouncer.ini");
  const lines = [
    "[databases]",
    `* = host=127.0.0.1 port=${serverPort} user=postgres`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    `pool_mode = ${mode}`,
    "default_pool_size = 10",
  ];
  await writeFile(config, lines.join("\n"));
  const server = await startServer({
    name: "pgbouncer",
    command: await locate("pgbouncer"),
    args: [config],
    folder,
    ...user,
    ready: () => answers(port, startup(), "R"),
  });
  return { server, port };
}

async function ownFolder(name: string, { uid, gid }: User): Promise<string> {
  const folder = await makeFolder(name);
  if (uid !== undefined && gid !== undefined) await chown(folder, uid, gid);
  return folder;
}

function initArgs(data: string): readonly string[] {
  return ["-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"];
}

function serveArgs(data: string, folder: string, port: number): readonly string[] {
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, "max_connections=300"];
  return ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
}

/** The first message of a client, by which it asks to log in. */
function startup(): Buffer {
  const text = Buffer.from("user\0postgres\0database\0postgres\0\0");
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + text.length, 0);
  head.writeInt32BE(3 << 16, 4);
  return Buffer.concat([head, text]);
}
