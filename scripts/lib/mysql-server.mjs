/** Throwaway servers of MariaDB and MySQL for tests and benches: their folders, their settings and how to reach them; running them is left to server-process.mjs. */
import { access } from "node:fs/promises";
import { join } from "node:path";
import { answers, locate, mustRunAs } from "./database-server.mjs";
import { cache } from "./run.mjs";
import { freePorts, makeFolder, startServer } from "./server-process.mjs";

/** Settings of a server whose machine is never expected to crash: killing its process loses nothing all the same. */
const hasty = [
  "--innodb-flush-log-at-trx-commit=2",
  "--innodb-flush-method=nosync",
  "--skip-innodb-doublewrite",
];

const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];

const tree = join(cache, "mysql-9");
const libraries = join(
  tree,
  "usr",
  "lib",
  process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu",
);

/** MySQL itself, unpacked from Debian's packages, beside what it needs of a newer system than this one. */
export const mysql9 = {
  folder: tree,
  program: join(tree, "usr", "sbin", "mysqld"),
  loader: join(libraries, process.arch === "arm64" ? "ld-linux-aarch64.so.1" : "ld-linux-x86-64.so.2"),
  /** Environment variable: a running server that is given there is taken instead. */
  url: "HOLDFAST_TEST_MYSQL9_URL",
};

/**
 * Starts an empty MariaDB.
 *
 * @param {{ durable?: boolean, settings?: readonly string[] }} [options] `durable`: as it comes, with fsync
 */
export async function startMysql({ durable = false, settings = [] } = {}) {
  const speed = durable ? [] : [...hasty, "--debug-no-sync", "--innodb-log-file-size=16M"];
  const folder = await makeFolder("mysql");
  const common = [
    "--no-defaults",
    ...asRoot,
    `--datadir=${join(folder, "data")}`,
    ...speed,
    "--skip-log-bin",
  ];
  const normal = ["--auth-root-authentication-method=normal", "--skip-test-db"];
  await mustRunAs({}, folder, await locate("mariadb-install-db"), [...common, ...normal]);
  const args = [...common, ...settings.map((setting) => `--${setting}`)];
  return serve("mysql", folder, await locate("mariadbd"), args);
}

/** Starts an empty MySQL 9. */
export async function startMysql9() {
  const { program, loader, url } = mysql9;
  await access(program).catch(() => {
    throw new Error(
      `MySQL 9 is not there: npm test -- mysql fetches it, or give a running one: ${url}=mysql://…`,
    );
  });
  const folder = await makeFolder("mysql9");
  const run = ["--library-path", `${libraries}:${join(libraries, "systemd")}`, "--argv0", "mysqld", program];
  const paths = [
    `--basedir=${join(tree, "usr")}`,
    `--lc-messages-dir=${join(tree, "usr", "share", "mysql")}`,
  ];
  const own = ["--secure-file-priv=", "--mysqlx=OFF", "--skip-log-bin", "--innodb-redo-log-capacity=8M"];
  const common = [
    "--no-defaults",
    ...asRoot,
    `--datadir=${join(folder, "data")}`,
    ...paths,
    ...own,
    ...hasty,
  ];
  await mustRunAs({}, folder, loader, [...run, ...common, "--initialize-insecure"]);
  return serve("mysql9", folder, loader, [...run, ...common]);
}

/**
 * @param {string} name
 * @param {string} folder
 * @param {string} command
 * @param {readonly string[]} args
 */
async function serve(name, folder, command, args) {
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
    // It greets whoever connects.
    ready: () => answers(port),
  });
  return { server, port, url: `mysql://root@127.0.0.1:${port}/mysql` };
}
