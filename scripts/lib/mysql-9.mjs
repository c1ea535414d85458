/** Where MySQL 9 is kept: unpacked from Debian's packages, beside what it needs of a newer system than this one. */
import { join } from "node:path";
import { cache } from "./run.mjs";

const isArm = process.arch === "arm64";
const folder = join(cache, "mysql-9");
const libraries = join(folder, "usr", "lib", isArm ? "aarch64-linux-gnu" : "x86_64-linux-gnu");

export const mysql9 = {
  folder,
  libraries,
  program: join(folder, "usr", "sbin", "mysqld"),
  loader: join(libraries, isArm ? "ld-linux-aarch64.so.1" : "ld-linux-x86-64.so.2"),
  /** Environment variable: a running server that is given there is taken instead. */
  url: "HOLDFAST_TEST_MYSQL9_URL",
};
