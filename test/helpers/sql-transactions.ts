/** What the tools for users' own transactions promise, the same for all databases: row locks, versions, fences, and a flash sale each way. */
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/connect.ts";
import { type Backend, isMigratable } from "../../src/core/backend.ts";
import type { FencedChange } from "../../src/sql/fenced.ts";
import type { RowLockOptions } from "../../src/sql/transaction.ts";
import type { VersionedChange, VersionedOutcome } from "../../src/sql/versioned.ts";

/** An open transaction of the user's. */
export interface Tx {
  rowLock(name: string, options?: RowLockOptions): Promise<boolean>;
  updateVersioned(change: VersionedChange): Promise<VersionedOutcome>;
  fencedUpdate(change: FencedChange): Promise<boolean>;
  fence(resource: string, token: bigint): Promise<void>;
  /** Rows of a query, or of none. */
  sql(text: string): Promise<Readonly<Record<string, unknown>>[]>;
  end(how: "COMMIT" | "ROLLBACK"): Promise<void>;
}

/** How a suite works with one database. */
export interface Bench {
  backend(): Backend;
  /** Begins a transaction; without `begin`, each statement is one of its own. */
  begin(begin?: boolean): Promise<Tx>;
  /** The tools on a pool instead of one of its connections. */
  onPool(): Pick<Tx, "rowLock" | "fence"> & { sessionLock(name: string): Promise<unknown> };
  /** The table of the names that rowLock has locked, in SQL. */
  readonly rowLocks: string;
}

/** Calls as those do who have no types. */
async function untyped(
  tx: Tx,
  call: "fence" | "fencedUpdate" | "updateVersioned",
  ...args: unknown[]
): Promise<unknown> {
  return Reflect.apply(tx[call], tx, args);
}

const stock = 30;
const buyers = 70;

/** Registers the cases. */
export function sqlTransactions(name: string, bench: () => Bench): void {
  const inTransaction = async <T>(work: (tx: Tx) => Promise<T>, begin = true): Promise<T> => {
    const tx = await bench().begin(begin);
    try {
      const result = await work(tx);
      await tx.end("COMMIT");
      return result;
    } catch (error) {
      await tx.end("ROLLBACK");
      throw error;
    }
  };

  describe(`transactions on ${name}`, () => {
    beforeAll(async () => {
      const backend = bench().backend();
      if (isMigratable(backend)) await backend.migrate();
      await backend.close();
      await inTransaction((tx) =>
        tx.sql(
          "CREATE TABLE goods (id INT PRIMARY KEY, stock INT NOT NULL, version INT NOT NULL, fence BIGINT)",
        ),
      );
    });

    it.each(["COMMIT", "ROLLBACK"] as const)(
      "a row lock ends with %s, and a waiter gets it then",
      async (how) => {
        const [a, b] = [await bench().begin(), await bench().begin()];
        expect(await a.rowLock(`ends-${how}`)).toBe(true);
        let got = false;
        const waiting = b.rowLock(`ends-${how}`).then((locked) => {
          got = locked;
        });
        await new Promise((resolve) => {
          setTimeout(resolve, 100);
        });
        expect(got).toBe(false);
        await a.end(how);
        await waiting;
        expect(got).toBe(true);
        await b.end("COMMIT");
      },
    );

    it.each(["new", "known"])(
      "a row lock on a %s name that is busy is a value or a typed error, and the transaction goes on",
      async (kind) => {
        const lock = `busy-${kind}`;
        if (kind === "known") await inTransaction((tx) => tx.rowLock(lock));
        const [a, b] = [await bench().begin(), await bench().begin()];
        expect(await a.rowLock(lock)).toBe(true);
        expect(await b.rowLock(lock, { skipLocked: true })).toBe(false);
        await expect(b.rowLock(lock, { nowait: true })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        await expect(b.rowLock(lock, { wait: "50ms" })).rejects.toMatchObject({ code: "LOCK_TIMEOUT", lock });
        expect(await b.rowLock(`${lock}-other`, { nowait: true })).toBe(true);
        await a.end("COMMIT");
        expect(await b.rowLock(lock, { nowait: true })).toBe(true);
        expect(await b.rowLock(lock, { skipLocked: true })).toBe(true);
        await b.end("COMMIT");
      },
    );

    it("names of row locks may be deleted at any time: that waits for those who hold, and none is held twice", async () => {
      await inTransaction((tx) => tx.rowLock("deleted"));
      let inside = 0;
      let served = 0;
      const loop = async (): Promise<void> => {
        for (let turn = 0; turn < 8; turn++) {
          await inTransaction(async (tx) => {
            await tx.rowLock("deleted");
            expect(++inside).toBe(1);
            await tx.sql("SELECT 1");
            served += 1;
            inside -= 1;
          });
        }
      };
      const over = new AbortController();
      const cleaner = async (): Promise<void> => {
        while (!over.signal.aborted) {
          await inTransaction((tx) => tx.sql(`DELETE FROM ${bench().rowLocks}`), false);
        }
      };
      const cleaning = cleaner();
      await Promise.all([loop(), loop(), loop()]).finally(() => over.abort());
      await cleaning;
      expect(served).toBe(24);
    });

    it("what lasts as long as a transaction is refused where none is open", async () => {
      const ways = [{}, { wait: "1s" }, { nowait: true }, { skipLocked: true }];
      const tx = await bench().begin(false);
      const refused = { code: "LOCK_INVALID", message: expect.stringContaining("transaction") as unknown };
      for (const on of [tx, bench().onPool()]) {
        for (const way of ways)
          await expect(on.rowLock("no-transaction", way)).rejects.toMatchObject(refused);
        await expect(on.fence("no-transaction", 1n)).rejects.toMatchObject(refused);
      }
      await tx.end("COMMIT");
      const pool = { code: "LOCK_INVALID", message: expect.stringContaining("pool") as unknown };
      await expect(bench().onPool().sessionLock("on a pool")).rejects.toMatchObject(pool);
    });

    it("a lock that was skipped does not make what is read under the next one old", async () => {
      await inTransaction((tx) => tx.sql("INSERT INTO goods VALUES (4, 1, 1, NULL)"));
      for (const lock of ["skip-a", "skip-b"]) await inTransaction((tx) => tx.rowLock(lock));
      const [other, seller, buyer] = [await bench().begin(), await bench().begin(), await bench().begin()];
      await other.rowLock("skip-a");
      await seller.rowLock("skip-b");
      expect(await buyer.rowLock("skip-a", { skipLocked: true })).toBe(false);
      await seller.sql("UPDATE goods SET stock = 0 WHERE id = 4");
      await seller.end("COMMIT");
      expect(await buyer.rowLock("skip-b", { skipLocked: true })).toBe(true);
      const rows = await buyer.sql("SELECT stock FROM goods WHERE id = 4");
      expect(rows.map((row) => Number(row["stock"]))).toEqual([0]);
      await buyer.end("COMMIT");
      await other.end("COMMIT");
    });

    it("tokens and resources that are none are refused before anything is asked", async () => {
      const tx = await bench().begin();
      const invalid = { code: "LOCK_INVALID" };
      for (const token of [5, "7", null, undefined, { token: 3n }, -1n, 2n ** 63n]) {
        await expect(untyped(tx, "fence", "report", token)).rejects.toMatchObject(invalid);
        const change = { table: "goods", key: { id: 1 }, token, set: { stock: 1 } };
        await expect(untyped(tx, "fencedUpdate", change)).rejects.toMatchObject(invalid);
      }
      for (const resource of ["", "a\0b", "x".repeat(513), "\ud800", 5, undefined])
        await expect(untyped(tx, "fence", resource, 1n)).rejects.toMatchObject(invalid);
      await tx.end("COMMIT");
    });

    it("changes of versions that make no sense are refused", async () => {
      await inTransaction((tx) => tx.sql("INSERT INTO goods VALUES (5, 5, 1, NULL)"));
      const tx = await bench().begin(false);
      const change = { table: "goods", key: { id: 5 }, change: () => ({ stock: 1 }) };
      for (const wrong of [
        { ...change, tries: 0 },
        { ...change, tries: Number.NaN },
        { ...change, change: () => {} },
        { ...change, change: () => ({ stock: 1, version: 7 }) },
        // A column that is null counts nothing.
        { ...change, version: "fence" },
      ])
        await expect(untyped(tx, "updateVersioned", wrong)).rejects.toMatchObject({ code: "LOCK_INVALID" });
      expect(await tx.updateVersioned(change)).toEqual({ outcome: "updated", tries: 1 });
      await tx.end("COMMIT");
    });

    it("a row lock takes one way of not waiting at most", async () => {
      const tx = await bench().begin();
      await expect(tx.rowLock("job", { nowait: true, skipLocked: true })).rejects.toMatchObject({
        code: "LOCK_INVALID",
      });
      await tx.end("ROLLBACK");
    });

    it("a change of a version that others have passed is tried again, and ends as a conflict", async () => {
      await inTransaction((tx) => tx.sql("INSERT INTO goods VALUES (1, 5, 1, NULL)"));
      const change = { table: "goods", key: { id: 1 }, tries: 3 };
      const spoil = (): Promise<unknown> =>
        inTransaction((tx) => tx.sql("UPDATE goods SET version = version + 1 WHERE id = 1"));
      let calls = 0;
      const once = await inTransaction(
        (tx) =>
          tx.updateVersioned({
            ...change,
            change: async (row) => {
              if (++calls === 1) await spoil();
              return { stock: Number(row["stock"]) - 1 };
            },
          }),
        false,
      );
      expect(once).toEqual({ outcome: "updated", tries: 2 });
      const never = await inTransaction(
        (tx) => tx.updateVersioned({ ...change, change: async () => spoil().then(() => ({ stock: 0 })) }),
        false,
      );
      expect(never).toEqual({ outcome: "conflict", tries: 3 });
      const rows = await inTransaction((tx) => tx.sql("SELECT stock FROM goods WHERE id = 1"));
      expect(rows.map((row) => Number(row["stock"]))).toEqual([4]);
      const missing = { table: "goods", key: { id: 99 }, change: () => ({ stock: 1 }) };
      expect(await inTransaction((tx) => tx.updateVersioned(missing), false)).toEqual({ outcome: "missing" });
      const still = { ...change, change: () => null };
      expect(await inTransaction((tx) => tx.updateVersioned(still), false)).toEqual({ outcome: "unchanged" });
    });

    it("a write with a stale token is refused in the same statement", async () => {
      await inTransaction((tx) => tx.sql("INSERT INTO goods VALUES (2, 5, 1, NULL)"));
      const write = (token: bigint, left: number): Promise<boolean> =>
        inTransaction((tx) =>
          tx.fencedUpdate({ table: "goods", key: { id: 2 }, token, set: { stock: left } }),
        );
      const above = 2n ** 53n + 1n;
      expect(await write(above, 4)).toBe(true);
      expect(await write(above, 3)).toBe(true);
      expect(await write(above, 3)).toBe(true);
      await expect(write(above - 1n, 9)).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
      const rows = await inTransaction((tx) => tx.sql("SELECT stock FROM goods WHERE id = 2"));
      expect(rows.map((row) => Number(row["stock"]))).toEqual([3]);
      const missing = { table: "goods", key: { id: 98 }, token: 1n, set: { stock: 1 } };
      expect(await inTransaction((tx) => tx.fencedUpdate(missing))).toBe(false);
    });

    it("a write with a stale token is refused even if the transaction still sees the row as it was before", async () => {
      await inTransaction((tx) => tx.sql("INSERT INTO goods VALUES (3, 5, 1, 5)"));
      const write = (tx: Tx, token: bigint): Promise<boolean> =>
        tx.fencedUpdate({ table: "goods", key: { id: 3 }, token, set: { stock: Number(token) } });
      const late = await bench().begin();
      expect((await late.sql("SELECT stock FROM goods WHERE id = 3")).length).toBe(1);
      expect(await inTransaction((tx) => write(tx, 10n))).toBe(true);
      await expect(write(late, 7n)).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
      await late.end("ROLLBACK");
    });

    it("a fence refuses a stale token and keeps the highest", async () => {
      await inTransaction((tx) => tx.fence("report", 10n));
      await inTransaction((tx) => tx.fence("report", 10n));
      await inTransaction((tx) => tx.fence("report", 12n));
      await expect(inTransaction((tx) => tx.fence("report", 11n))).rejects.toMatchObject({
        code: "LOCK_STALE_TOKEN",
      });
      await inTransaction((tx) => tx.fence("other", 1n));
    });

    it("names of tables and columns are checked before they stand in SQL", async () => {
      const bad = { key: { id: 1 }, token: 1n, set: { stock: 1 } };
      for (const change of [
        { ...bad, table: 'goods"; DROP TABLE goods; --' },
        { ...bad, table: "goods", key: { "id = 1 OR 1": 1 } },
      ]) {
        await expect(inTransaction((tx) => tx.fencedUpdate(change))).rejects.toMatchObject({
          code: "LOCK_INVALID",
        });
      }
    });

    // Flash sale: more buyers than goods. What is sold and what is left must add up, whichever way it is guarded.
    const sale = async (id: number, buy: (tx: Tx) => Promise<boolean>, begin: boolean): Promise<void> => {
      await inTransaction((tx) => tx.sql(`INSERT INTO goods VALUES (${id}, ${stock}, 1, NULL)`));
      const sold = await Promise.all(Array.from({ length: buyers }, () => inTransaction(buy, begin)));
      const rows = await inTransaction((tx) => tx.sql(`SELECT stock FROM goods WHERE id = ${id}`));
      expect(sold.filter(Boolean).length).toBe(stock);
      expect(rows.map((row) => Number(row["stock"]))).toEqual([0]);
    };

    const readThenWrite = async (tx: Tx, id: number): Promise<boolean> => {
      const [row] = await tx.sql(`SELECT stock FROM goods WHERE id = ${id}`);
      const left = Number(row?.["stock"]);
      if (left > 0) await tx.sql(`UPDATE goods SET stock = ${left - 1} WHERE id = ${id}`);
      return left > 0;
    };

    it("a flash sale under a row lock does not oversell", async () => {
      const buy = async (tx: Tx): Promise<boolean> => {
        await tx.rowLock("sale:10");
        return readThenWrite(tx, 10);
      };
      await sale(10, buy, true);
    });

    it("a flash sale by versions does not oversell", async () => {
      const buy = async (tx: Tx): Promise<boolean> => {
        const change = (row: Readonly<Record<string, unknown>>): { stock: number } | null =>
          Number(row["stock"]) > 0 ? { stock: Number(row["stock"]) - 1 } : null;
        const { outcome } = await tx.updateVersioned({ table: "goods", key: { id: 11 }, change, tries: 200 });
        expect(outcome).not.toBe("conflict");
        return outcome === "updated";
      };
      await sale(11, buy, false);
    });

    it("a flash sale under a lock with a fence does not oversell", async () => {
      const locks = await connect(bench().backend());
      onTestFinished(() => locks.close());
      const buy = (tx: Tx): Promise<boolean> =>
        locks.request("sale:12", async ({ token }) => {
          const [row] = await tx.sql("SELECT stock FROM goods WHERE id = 12");
          const left = Number(row?.["stock"]);
          return (
            left > 0 && tx.fencedUpdate({ table: "goods", key: { id: 12 }, token, set: { stock: left - 1 } })
          );
        });
      await sale(12, buy, false);
    });
  });
}
