/** The Web Locks suite on a SQLite file: two managers of one process stand for two frames. */
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { sqliteFile } from "../helpers/sqlite-file.ts";
import { webLocksSuite } from "./suite.ts";

webLocksSuite("sqlite", async () => {
  const file = sqliteFile();
  const clients: LockManager[] = [];
  return {
    client: async () => {
      const client = await connect(`sqlite:${file.path}`);
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      file.remove();
    },
  };
});
