/** A throwaway PostgreSQL for tests and benches: its folder, its settings and how to reach it; running it is left to server-process.mjs. */
import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts, makeFolder, startServer } from "./server-process.mjs";
import { answers, locate, mustRunAs, userOf } from "./database-server.mjs";

/** Settings of a server whose machine is never expected to crash: killing its process loses nothing all the same. */
const hasty = ["-c", "fsync=off", "-c", "full_page_writes=off"];

/**
 * Starts an empty server. It refuses to run as root, so that root runs it as the user `postgres`.
 *
 * @param {{ durable?: boolean, settings?: readonly string[] }} [options] `durable`: as it comes, with fsync
 */
export async function startPostgres({ durable = false, settings = [] } = {}) {
  const user = await userOf("postgres");
  const [folder, [port = 0]] = [await makeFolder("postgres"), await freePorts(1)];
  if (user.uid !== undefined && user.gid !== undefined) await chown(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const folders = ["/usr/lib/postgresql/*/bin"];
  await mustRunAs(user, folder, await locate("initdb", folders), initArgs(data));
  const server = await startServer({
    name: "postgres",
    command: await locate("postgres", folders),
    args: [
      ...serveArgs(data, folder, port),
      ...(durable ? [] : hasty),
      ...settings.flatMap((setting) => ["-c", setting]),
    ],
    folder,
    ...user,
    env: { ...process.env, LC_ALL: "C" },
    // Whoever may log in is answered with R; while it recovers, with an error.
    ready: () => answers(port, startup(), "R"),
  });
  return { server, port, url: `postgres://postgres@127.0.0.1:${port}/postgres` };
}

/**
 * Starts a PgBouncer in front of a throwaway server, for all of its databases.
 *
 * @param {number} serverPort
 * @param {"transaction" | "session"} mode
 */
export async function startPgbouncer(serverPort, mode) {
  const user = await userOf("postgres");
  const [folder, [port = 0]] = [await makeFolder("pgbouncer"), await freePorts(1)];
  if (user.uid !== undefined && user.gid !== undefined) await chown(folder, user.uid, user.gid);
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

function initArgs(/** @type {string} */ data) {
  return ["-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"];
}

/**
 * @param {string} data
 * @param {string} folder
 * @param {number} port
 */
function serveArgs(data, folder, port) {
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, "max_connections=300"];
  return ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
}

/** The first message of a client, by which it asks to log in. */
function startup() {
  const text = Buffer.from("user\0postgres\0database\0postgres\0\0");
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + text.length, 0);
  head.writeInt32BE(3 << 16, 4);
  return Buffer.concat([head, text]);
}
