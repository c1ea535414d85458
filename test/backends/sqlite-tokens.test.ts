/** Tokens over a power cut: the last commits are lost, the machine starts anew, and its clock may be wrong. */
import { copyFileSync, existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/backends/sqlite/index.ts";
import type { SqliteBackend } from "../../src/backends/sqlite/index.ts";
import { type Machine, thisMachine } from "../../src/backends/sqlite/machine.ts";
import type { NewEntry } from "../../src/core/backend.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";

const real = thisMachine();
const owner = { client: "c", host: "h", pid: 1 };
const dayMs = 86_400_000;

let files: SqliteFile[] = [];

function newFile(): SqliteFile {
  const file = sqliteFile();
  files.push(file);
  return file;
}

beforeEach(() => {
  files = [];
});

afterEach(() => {
  for (const file of files) file.remove();
});

/** A machine that was started for the nth time, with a wall clock that may be wrong. */
function boot(times: number, wallShiftMs = 0): Machine {
  return { bootId: `boot-${times}`, nowUs: () => real.nowUs(), wallMs: () => real.wallMs() + wallShiftMs };
}

function entry(id: string): NewEntry {
  return { id, owner, mode: "write", weight: 1, ttlMs: 30_000 };
}

/** Takes and gives back a lock; gives its token. */
async function token(backend: SqliteBackend): Promise<bigint> {
  const said = await backend.append("q", entry("x"));
  await backend.remove("q", "x");
  return said?.self.seq ?? 0n;
}

/** What the disk has at this moment: the file, and the log unless it was lost. */
function cutPower(from: SqliteFile, withLog: boolean): SqliteFile {
  const to = newFile();
  copyFileSync(from.path, to.path);
  if (withLog && existsSync(`${from.path}-wal`)) copyFileSync(`${from.path}-wal`, `${to.path}-wal`);
  return to;
}

describe("a token that was handed out is never handed out again", () => {
  it.each([
    ["the log is there", true],
    ["the log was written back", false],
  ])("when later commits are lost and the clock is a day behind: %s", async (_what, withLog) => {
    const before = newFile();
    const one = await open({ path: before.path }, boot(1));
    const first = await token(one);
    if (!withLog) await checkpoint(before);
    // What the disk has seen so far is all that survives; hundreds of tokens are handed out after it.
    const survived = cutPower(before, withLog);
    let highest = first;
    for (let turn = 0; turn < 500; turn++) highest = await token(one);
    expect(highest).toBeGreaterThan(first);
    await one.close();

    const two = await open({ path: survived.path }, boot(2, -dayMs));
    expect(await token(two)).toBeGreaterThan(highest);
    await two.close();
  });

  it("when the power is cut again and again, each time before anything more was written", async () => {
    let disk = newFile();
    let highest = 0n;
    for (let times = 1; times <= 5; times++) {
      const backend = await open({ path: disk.path }, boot(times, -times * dayMs));
      const first = await token(backend);
      expect(first).toBeGreaterThan(highest);
      // The disk has what was written through: up to the first token of this boot.
      const survived = cutPower(disk, true);
      for (let turn = 0; turn < 50; turn++) highest = await token(backend);
      await backend.close();
      disk = survived;
    }
  });

  it("when the machine does not say which boot it is", async () => {
    const before = newFile();
    const nameless = (wallShiftMs: number): Machine => ({ ...boot(0, wallShiftMs), bootId: null });
    const one = await open({ path: before.path }, nameless(0));
    await token(one);
    const survived = cutPower(before, true);
    let highest = 0n;
    for (let turn = 0; turn < 100; turn++) highest = await token(one);
    await one.close();
    const two = await open({ path: survived.path }, nameless(-dayMs));
    expect(await token(two)).toBeGreaterThan(highest);
    await two.close();
  });

  it("when only the clock is set back", async () => {
    let shiftMs = 0;
    const machine: Machine = { ...boot(1), wallMs: () => real.wallMs() + shiftMs };
    const backend = await open({ path: newFile().path }, machine);
    const before = await token(backend);
    shiftMs = -dayMs;
    expect(await token(backend)).toBeGreaterThan(before);
    await backend.close();
  });
});

describe("entries of an earlier boot", () => {
  it("are dead, whatever the clock of this boot says", async () => {
    const before = newFile();
    const one = await open({ path: before.path }, boot(1));
    await one.append("q", { ...entry("x"), ttlMs: 30 * dayMs });
    const survived = cutPower(before, true);
    await one.close();
    const two = await open({ path: survived.path }, boot(2));
    expect(await two.list("q")).toEqual([]);
    expect((await two.append("q", entry("y")))?.ahead.nearest).toBeNull();
    await two.close();
  });

  it("are told by the clock that has gone back where the boot has no name", async () => {
    const before = newFile();
    const late: Machine = { bootId: null, nowUs: () => real.nowUs() + 9e12, wallMs: () => real.wallMs() };
    const one = await open({ path: before.path }, late);
    await one.append("q", entry("x"));
    const survived = cutPower(before, true);
    await one.close();
    const two = await open({ path: survived.path }, { ...late, nowUs: () => real.nowUs() });
    expect(await two.list("q")).toEqual([]);
    await two.close();
  });
});

describe("entries of the same boot", () => {
  it("live on where one of those who share the file is not told its name", async () => {
    const nameless: Machine = { ...boot(1), bootId: null };
    let file = newFile();
    for (const [index, machine] of [boot(1), nameless, boot(1), nameless, nameless].entries()) {
      const backend = await open({ path: file.path }, machine);
      await backend.append(`q${index}`, entry("x"));
      const lists = Array.from({ length: index + 1 }, (_, each) => backend.list(`q${each}`));
      expect((await Promise.all(lists)).map(({ length }) => length)).toEqual(lists.map(() => 1));
      file = cutPower(file, true);
      await backend.close();
    }
  });

  it("are known to be of an earlier one when the clock has gone back, also if nobody without a name was there", async () => {
    const start = real.nowUs();
    let ranUs = 0;
    const before = newFile();
    const one = await open({ path: before.path }, { ...boot(1), nowUs: () => start + ranUs });
    ranUs = 10 * 60_000_000;
    await one.append("q", entry("x"));
    await one.queues("");
    const survived = cutPower(before, true);
    await one.close();
    const two = await open(
      { path: survived.path },
      { ...boot(2), bootId: null, nowUs: () => start + 8 * 60_000_000 },
    );
    expect(await two.list("q")).toEqual([]);
    await two.close();
  });
});

async function checkpoint(file: SqliteFile): Promise<void> {
  const { findDriver } = await import("../../src/backends/sqlite/driver.ts");
  const db = findDriver().open(file.path);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}
