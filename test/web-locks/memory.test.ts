/** The Web Locks suite on memory, by the system clock: two managers on one store stand for two frames. */
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { webLocksSuite } from "./suite.ts";

let stores = 0;

webLocksSuite("memory", async () => {
  const url = `memory:web-locks-${++stores}`;
  const clients: LockManager[] = [];
  return {
    client: async () => {
      const client = await connect(url);
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
});
