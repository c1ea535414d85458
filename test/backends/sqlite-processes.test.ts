/** The SQLite backend against the contract from several processes at once: each client lives in the next of three. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { backendContract } from "../../src/testing/index.ts";
import { type Build, build } from "../helpers/child.ts";
import { RemoteHost } from "../helpers/remote-backend.ts";
import { sqliteFile } from "../helpers/sqlite-file.ts";

let built: Build;
const hosts: RemoteHost[] = [];
let opened = 0;

beforeAll(async () => {
  built = await build();
  const address = built.address("backends/sqlite/index");
  for (let count = 0; count < 3; count++) hosts.push(new RemoteHost(address, "sqliteBackend"));
}, 60_000);

afterAll(async () => {
  await Promise.all(hosts.map((host) => host.stop()));
  await built.remove();
});

backendContract({
  name: "sqlite, three processes",
  open: () => {
    const file = sqliteFile();
    return {
      client: async () => {
        const host = hosts[opened++ % hosts.length];
        if (host === undefined) throw new Error("there is no host");
        return host.open({ path: file.path });
      },
      litter: async () => file.rows().filter((row) => row.startsWith("entry")),
      close: async () => file.remove(),
    };
  },
  runner: { describe, it },
  // As for the other store that is tested so: each call goes through another process, and a busy machine stalls both.
  shortMs: 400,
  lagMs: 100,
  interleavings: 100,
});
