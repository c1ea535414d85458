/** What only shows between two statements: an entry that is taken out between its append and the look at what is ahead. */
import { expect, it } from "vitest";
import { findDriver } from "../../src/backends/sqlite/driver.ts";
import { Displaced, Ledger } from "../../src/backends/sqlite/ledger.ts";
import { thisMachine } from "../../src/backends/sqlite/machine.ts";
import { schema } from "../../src/backends/sqlite/schema.ts";
import { prepare } from "../../src/backends/sqlite/statements.ts";

it("an entry that was evicted before the look does not hear that nobody is ahead", () => {
  const db = findDriver().open(":memory:");
  db.exec(schema);
  db.exec("UPDATE entries SET since = 9000000000000000000 WHERE queue = ''");
  const ledger = new Ledger(
    prepare(db),
    thisMachine(),
    () => false,
    () => {},
  );
  const owner = { process: "p", slot: 1 };
  const asked = (id: string) =>
    ({ id, owner: { client: "c", host: "h", pid: 1 }, mode: "write", weight: 1, ttlMs: 1_000 }) as const;
  ledger.append("q", asked("holder"), owner);
  const waiter = ledger.append("q", asked("waiter"), owner);
  if (waiter === null) throw new Error("refused");
  expect(ledger.look("q", waiter).snapshot.ahead.count).toBe(1);
  ledger.remove("q", "waiter", true);
  ledger.remove("q", "holder", true);
  expect(() => ledger.look("q", waiter)).toThrow(Displaced);
  db.close();
});
