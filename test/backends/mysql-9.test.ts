/** The mysql backend against the contract, on MySQL itself. */
import { describe, it } from "vitest";
import { backendContract } from "../../src/testing/index.ts";
import { testMysql9 } from "../helpers/mysql.ts";
import { mysqlStores } from "../helpers/mysql-store.ts";

backendContract({
  name: "mysql 9",
  open: mysqlStores(testMysql9),
  runner: { describe, it },
  interleavings: 10,
});
