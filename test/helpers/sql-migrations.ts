/** How the tables of a SQL backend come about, the same for all databases: races, rights, refusals, nothing for those who only look. */
import { afterAll, describe, expect, it } from "vitest";
import { connect } from "../../src/connect.ts";
import type { SqlBackend } from "../../src/sql/backend.ts";
import { LockError } from "../../src/core/errors.ts";
import { inProcesses } from "./migrators.ts";

/** How a suite works with one database. */
export interface Migrations {
  /** The names of the backend's folder and of its factory. */
  readonly names: readonly [backend: string, factory: string];
  /** `tables`: another schema or prefix than the default. */
  open(url: string, options?: { readonly tables?: string; readonly migrate?: boolean }): SqlBackend;
  database(): Promise<string>;
  /** The URL for a user that may read, write and execute, and create nothing. */
  plainUser(url: string): Promise<string>;
  /** Makes the tables look as if a later version had made them. */
  pretendNewer(url: string): Promise<void>;
}

const owner = { client: "c", host: "h", pid: 1 };
const entry = { id: "e", owner, mode: "write", weight: 1, ttlMs: 1_000 } as const;

/** Registers the cases. */
export function sqlMigrations(rig: Migrations): void {
  const opened: Array<{ close(): Promise<void> }> = [];
  const open: Migrations["open"] = (...given) => {
    const client = rig.open(...given);
    opened.push(client);
    return client;
  };
  afterAll(async () => void (await Promise.all(opened.map((client) => client.close()))));

  describe(`the tables of ${rig.names[0]}`, () => {
    it("are not created for those who only look", async () => {
      const client = open(await rig.database());
      const found = [await client.list("job"), await client.queues(""), await client.remove("job", "e")];
      expect(found).toEqual([[], [], false]);
      expect(await client.migrate()).toEqual([1]);
    });

    it("are created once by several processes and clients that race for it", async () => {
      const url = await rig.database();
      const applied = await inProcesses(3, ...rig.names, url);
      expect(applied.flat()).toEqual([1]);
      const clients = await Promise.all(
        Array.from({ length: 4 }, () => connect(open(url, { tables: "other" }))),
      );
      await Promise.all(clients.map((client) => client.request("job", () => {})));
      expect(await open(url, { tables: "other" }).migrate()).toEqual([]);
    });

    it("can be used with the rights to read, write and execute", async () => {
      const url = await rig.database();
      expect(await open(url).migrate()).toEqual([1]);
      const plain = await rig.plainUser(url);
      const [a, b] = [await connect(open(plain)), await connect(open(plain))];
      const lock = await a.acquire("job", { ttl: "1s" });
      const waiting = b.acquire("job");
      await new Promise((resolve) => {
        setTimeout(resolve, 1_500);
      });
      expect(lock.held).toBe(true);
      expect(await lock.release()).toBe("released");
      await (await waiting).release();
      const forbidden = open(plain, { tables: "forbidden" });
      const error: unknown = await forbidden.append("job", entry).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockError);
      expect(String(error)).toMatch(/denied/);
    });

    it("are not created where that was not wanted, and newer ones are refused", async () => {
      const url = await rig.database();
      const client = open(url, { migrate: false });
      const message: unknown = expect.stringContaining("holdfast migrate");
      await expect(client.list("job")).rejects.toMatchObject({ code: "LOCK_UNSUPPORTED", message });
      await client.migrate();
      expect(await client.list("job")).toEqual([]);
      await rig.pretendNewer(url);
      const newer: unknown = expect.stringContaining("update holdfast");
      await expect(open(url).list("job")).rejects.toMatchObject({ message: newer });
    });
  });
}
