/** What the adapter of the SQLite libraries makes good: writes that follow a busy file are committed, whatever was stuck. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Database, type DriverName, findDriver } from "../../src/backends/sqlite/driver.ts";

const names: readonly DriverName[] = ["libsql", findDriver().name];

describe.each([...new Set(names)])("%s", (name) => {
  let folder = "";
  let ours: Database;
  let others: Database;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-driver-"));
    const open = (): Database => findDriver(name).open(join(folder, "test.db"));
    [ours, others] = [open(), open()];
    for (const db of [ours, others]) db.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 0");
    others.exec("CREATE TABLE t (x)");
  });

  afterEach(() => {
    ours.close();
    others.close();
    rmSync(folder, { recursive: true });
  });

  /** Runs a statement of ours while the others write. */
  function runWhileBusy(run: () => unknown): void {
    others.exec("BEGIN IMMEDIATE");
    expect(run).toThrow(/busy|locked/i);
    others.exec("COMMIT");
  }

  function seen(): readonly unknown[] {
    return others
      .prepare<{ x: bigint }>("SELECT x FROM t ORDER BY x")
      .all()
      .map(({ x }) => Number(x));
  }

  it("commits a statement that is tried again after the file was busy", () => {
    const insert = ours.prepare("INSERT INTO t VALUES (?)");
    runWhileBusy(() => insert.run(1));
    expect(insert.run(1)).toBe(1);
    expect(seen()).toEqual([1]);
  });

  it("commits other statements after one found the file busy and was given up", () => {
    const givenUp = ours.prepare("INSERT INTO t SELECT ? WHERE ? IS NOT NULL");
    const insert = ours.prepare("INSERT INTO t VALUES (?)");
    runWhileBusy(() => givenUp.run(1, 1));
    insert.run(2);
    expect(seen()).toEqual([2]);
    expect(givenUp.run(3, 1)).toBe(1);
    expect(seen()).toEqual([2, 3]);
  });

  it("is in no transaction after BEGIN found the file busy and was given up", () => {
    const begin = ours.prepare("BEGIN IMMEDIATE");
    const insert = ours.prepare("INSERT INTO t VALUES (?)");
    runWhileBusy(() => begin.run());
    insert.run(1);
    expect(seen()).toEqual([1]);
    others.exec("BEGIN IMMEDIATE; COMMIT");
  });

  it("says again that the file is busy while the statement that is stuck cannot be ended", () => {
    const givenUp = ours.prepare("INSERT INTO t SELECT ? WHERE ? IS NOT NULL");
    const insert = ours.prepare("INSERT INTO t VALUES (?)");
    others.exec("BEGIN IMMEDIATE");
    expect(() => givenUp.run(1, 1)).toThrow(/busy|locked/i);
    expect(() => insert.run(2)).toThrow(/busy|locked/i);
    others.exec("COMMIT");
    expect(insert.run(2)).toBe(1);
    expect(seen()).toEqual([2]);
  });
});
