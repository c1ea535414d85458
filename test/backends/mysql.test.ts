/** The mysql backend against the contract, on MariaDB. */
import { describe, it } from "vitest";
import { backendContract } from "../../src/testing/index.ts";
import { testMysql } from "../helpers/mysql.ts";
import { mysqlStores } from "../helpers/mysql-store.ts";

backendContract({ name: "mysql", open: mysqlStores(testMysql), runner: { describe, it }, interleavings: 25 });
