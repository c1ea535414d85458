/** What the guard for SQL must do, the same for all databases: the table of cases by name and by column, and its transactions. */
import { describe, expect, it } from "vitest";
import { LockError } from "../../src/core/errors.ts";
import type { Connection, SqlGuard } from "../../src/fencing/index.ts";
import type { Subject } from "./cases.ts";
import { guardCases } from "./guard-cases.ts";

/** How a suite works with one database. */
export interface Bench<Tx extends Connection> {
  /** A guard that remembers nothing of its own. */
  guard(): SqlGuard<Tx>;
  /** One where the tables are not there. */
  elsewhere(): SqlGuard<Tx>;
  /** Ends the connection of a transaction at the server. */
  cut(tx: Tx): Promise<void>;
  rows(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

let resources = 0;

/** Registers the cases; the table `docs (id INT PRIMARY KEY, body VARCHAR(100), fence BIGINT)` is there. */
export function sqlGuardCases<Tx extends Connection>(name: string, bench: () => Bench<Tx>): void {
  const bodyOf = async (id: number): Promise<string | null> => {
    const [row] = await bench().rows(`SELECT body FROM docs WHERE id = ${id}`);
    return typeof row?.["body"] === "string" ? row["body"] : null;
  };
  const fresh = async (): Promise<number> => {
    const id = ++resources;
    await bench().rows(`INSERT INTO docs VALUES (${id}, NULL, NULL)`);
    return id;
  };

  const byName = (id: number): Subject => {
    const guard = bench().guard();
    return {
      write: (token, value) =>
        guard.write(`docs:${id}`, token, (tx) =>
          tx.query(`UPDATE docs SET body = '${value}' WHERE id = ${id}`),
        ),
      read: () => bodyOf(id),
      show: (token) => guard.show(`docs:${id}`, token),
      highest: () => guard.highest(`docs:${id}`),
      restart: async () => byName(id),
    };
  };
  guardCases(`${name}, by the name of the resource`, async () => byName(await fresh()), true);

  const byColumn = (id: number): Subject => {
    const guard = bench().guard();
    const row = { table: "docs", key: { id } };
    return {
      write: (holder, body) => guard.update({ ...row, holder, set: { body } }),
      read: () => bodyOf(id),
      // An update of the token alone.
      show: (holder) => guard.update({ ...row, holder, set: { id } }),
      highest: async () => {
        const [found] = await bench().rows(
          `SELECT CAST(fence AS CHAR(20)) AS fence FROM docs WHERE id = ${id}`,
        );
        return typeof found?.["fence"] === "string" ? BigInt(found["fence"].trim()) : null;
      },
      restart: async () => byColumn(id),
    };
  };
  guardCases(`${name}, by a column of the row`, async () => byColumn(await fresh()), true);

  describe(`transactions of the guard on ${name}`, () => {
    it("give what the work gives, and roll all of it back when it throws", async () => {
      const id = await fresh();
      const guard = bench().guard();
      expect(await guard.write("gives", 7n, () => "result")).toBe("result");
      const failing = guard.write("gives", 8n, async (tx) => {
        await tx.query(`UPDATE docs SET body = 'half' WHERE id = ${id}`);
        throw new Error("changed my mind");
      });
      await expect(failing).rejects.toThrow("changed my mind");
      expect(await bodyOf(id)).toBe(null);
      // The token was part of what was rolled back.
      expect(await guard.highest("gives")).toBe(7n);
    });

    it("of one resource go one after the other: a newer one waits until the older has ended", async () => {
      const id = await fresh();
      const guard = bench().guard();
      const order: string[] = [];
      let begun: () => void = () => {};
      const hasBegun = new Promise<void>((resolve) => {
        begun = resolve;
      });
      const old = guard.write("turns", 33n, async (tx) => {
        begun();
        await tx.query(`UPDATE docs SET body = 'old' WHERE id = ${id}`);
        await new Promise((resolve) => {
          setTimeout(resolve, 100);
        });
        order.push("old");
      });
      await hasBegun;
      const next = guard.write("turns", 34n, async (tx) => {
        order.push("new");
        await tx.query(`UPDATE docs SET body = 'new' WHERE id = ${id}`);
      });
      await Promise.all([old, next]);
      expect(order).toEqual(["old", "new"]);
      expect(await bodyOf(id)).toBe("new");
    });

    it("whose connection ends in the middle write nothing, and say so", async () => {
      const id = await fresh();
      const guard = bench().guard();
      const cut = guard.write("cut", 7n, async (tx) => {
        await tx.query(`UPDATE docs SET body = 'half' WHERE id = ${id}`);
        await bench().cut(tx);
        await tx.query(`UPDATE docs SET body = 'whole' WHERE id = ${id}`);
      });
      await expect(cut).rejects.toThrow();
      // The end of a connection before COMMIT was answered leaves the outcome open.
      const late = guard.write("cut", 8n, async (tx) => {
        await tx.query(`UPDATE docs SET body = 'half' WHERE id = ${id}`);
        await bench().cut(tx);
      });
      await expect(late).rejects.toMatchObject({ code: "LOCK_OUTCOME_UNKNOWN" });
      expect(await bodyOf(id)).toBe(null);
      // The pool has connections that work.
      await guard.write("cut", 9n, (tx) => tx.query(`UPDATE docs SET body = 'whole' WHERE id = ${id}`));
      expect(await bodyOf(id)).toBe("whole");
    });

    it("whose connection ends while the work is elsewhere do not end the process", async () => {
      const guard = bench().guard();
      const away = guard.write("away", 7n, async (tx) => {
        await bench().cut(tx);
        await new Promise((resolve) => {
          setTimeout(resolve, 200);
        });
        throw new Error("changed my mind");
      });
      await expect(away).rejects.toThrow("changed my mind");
      await guard.write("away", 8n, () => {});
    });

    it("twenty that show a resource's first token at once all end well or stale", async () => {
      const guard = bench().guard();
      for (let round = 0; round < 5; round++) {
        const all = await Promise.allSettled(
          Array.from({ length: 20 }, (_, index) => guard.show(`first:${round}`, BigInt(index + 1))),
        );
        const refused = all.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
        expect(
          refused.filter((error) => !(error instanceof LockError && error.code === "LOCK_STALE_TOKEN")),
        ).toEqual([]);
        expect(await guard.highest(`first:${round}`)).toBe(20n);
      }
    });

    it("need the tables of holdfast, and say how to get them", async () => {
      await expect(bench().elsewhere().show("x", 1n)).rejects.toMatchObject({
        code: "LOCK_UNSUPPORTED",
        message: expect.stringContaining("holdfast migrate"),
      });
      await expect(bench().guard().show("x".repeat(513), 1n)).rejects.toMatchObject({ code: "LOCK_INVALID" });
      await expect(bench().guard().show("", 1n)).rejects.toMatchObject({ code: "LOCK_INVALID" });
    });

    it("update a row that is there, and say when it is not", async () => {
      const guard = bench().guard();
      const id = await fresh();
      const row = { table: "docs", key: { id }, set: { body: "x" } };
      expect(await guard.update({ ...row, holder: { token: 7n, name: "the lock" } })).toBe(true);
      await expect(guard.update({ ...row, holder: { token: 6n, name: "the lock" } })).rejects.toMatchObject({
        code: "LOCK_STALE_TOKEN",
        lock: "the lock",
        backend: name,
      });
      const missing = { table: "docs", key: { id: 999_999 }, holder: 1n, set: { body: "x" } };
      expect(await guard.update(missing)).toBe(false);
      await expect(guard.update({ ...missing, table: "no_docs" })).rejects.toBeInstanceOf(LockError);
    });
  });
}
