/** The SQLite backend against the contract: all clients in this process. From several processes: sqlite-processes.test.ts. */
import { describe, it } from "vitest";
import { sqliteBackend } from "../../src/backends/sqlite/index.ts";
import { backendContract } from "../../src/testing/index.ts";
import { sqliteFile } from "../helpers/sqlite-file.ts";

backendContract({
  name: "sqlite, one process",
  open: () => {
    const file = sqliteFile();
    return {
      client: () => sqliteBackend({ path: file.path }),
      litter: async () => file.rows().filter((row) => row.startsWith("entry")),
      close: async () => file.remove(),
    };
  },
  runner: { describe, it },
  shortMs: 100,
  lagMs: 50,
  interleavings: 300,
});
