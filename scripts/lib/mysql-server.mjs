/** The MariaDB of src/verify/servers for tests and benches, from the build; and MySQL 9, which only tests have. */
import { access } from "node:fs/promises";
import { join } from "node:path";
import { hasty, serveMysql, startMysql } from "../../dist/verify/servers/mysql.js";
import { mustRunAs } from "../../dist/verify/servers/programs.js";
import { makeFolder } from "../../dist/verify/servers/server-process.js";
import { mysql9 } from "./mysql-9.mjs";

export { startMysql };

/** Starts an empty MySQL 9. */
export async function startMysql9() {
  const { folder: tree, libraries, program, loader, url } = mysql9;
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
    `--datadir=${join(folder, "data")}`,
    `--tmpdir=${folder}`,
  ];
  const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];
  const own = ["--secure-file-priv=", "--mysqlx=OFF", "--skip-log-bin", "--innodb-redo-log-capacity=8M"];
  const common = ["--no-defaults", ...asRoot, ...paths, ...own, ...hasty];
  await mustRunAs({}, folder, loader, [...run, ...common, "--initialize-insecure"]);
  return serveMysql({ name: "mysql9", folder, command: loader, args: [...run, ...common] });
}
