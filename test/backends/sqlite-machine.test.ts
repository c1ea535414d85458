/** Which processes are gone, where the file is, and what is seen of it. */
import { spawn } from "node:child_process";
import { linkSync, readFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defaultPath } from "../../src/backends/sqlite/file.ts";
import { sqliteBackend } from "../../src/backends/sqlite/index.ts";
import { isGone, nameOfThisProcess } from "../../src/backends/sqlite/machine.ts";
import { findDriver } from "../../src/backends/sqlite/driver.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";

const name = nameOfThisProcess();
const [pid = "", start = "", namespace = "", thread = ""] = name.split(".");

/** This process's name with another part in it. */
function changed(part: Partial<{ pid: string; start: string; namespace: string }>): string {
  return [part.pid ?? pid, part.start ?? start, part.namespace ?? namespace, thread].join(".");
}

describe("a process", () => {
  it("that runs is not gone", () => {
    expect(Number.parseInt(pid, 36)).toBe(process.pid);
    expect(isGone(name)).toBe(false);
  });

  it("whose pid was given to another one is gone", () => {
    const later = (Number.parseInt(start, 36) + 1).toString(36);
    expect(isGone(changed({ start: later }))).toBe(true);
  });

  it("that has ended is gone", async () => {
    const child = spawn("sleep", ["60"]);
    const childPid = child.pid ?? 0;
    const stat = readFileSync(`/proc/${childPid}/stat`, "utf8");
    const childStart = Number(stat.replace(/^.*\) /s, "").split(" ")[19]).toString(36);
    const childName = changed({ pid: childPid.toString(36), start: childStart });
    expect(isGone(childName)).toBe(false);
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGKILL");
    await ended;
    expect(isGone(childName)).toBe(true);
  });

  it("of another pid namespace is left alone, whatever its pid", () => {
    const elsewhere = (Number.parseInt(namespace, 36) + 1).toString(36);
    expect(isGone(changed({ namespace: elsewhere, start: "1" }))).toBe(false);
  });

  it("with a name that says nothing is left alone", () => {
    for (const odd of ["", "x", "...", "0.0.0.0", ".hidden", "README.md"]) expect(isGone(odd)).toBe(false);
  });
});

describe("the default path", () => {
  it("is in the directory for state, and not for run time, which jobs of cron do not have", () => {
    const env = { XDG_RUNTIME_DIR: "/run/user/1000" };
    expect(defaultPath(env, "linux", "/home/u")).toBe("/home/u/.local/state/holdfast/locks.db");
    expect(defaultPath({ XDG_STATE_HOME: "/state" }, "linux", "/home/u")).toBe("/state/holdfast/locks.db");
    expect(defaultPath({ XDG_STATE_HOME: "relative" }, "linux", "/home/u")).toBe(
      "/home/u/.local/state/holdfast/locks.db",
    );
    expect(defaultPath({}, "darwin", "/Users/u")).toBe(
      "/Users/u/Library/Application Support/holdfast/locks.db",
    );
    expect(defaultPath({ LOCALAPPDATA: "/local" }, "win32", "/u")).toBe("/local/holdfast/locks.db");
  });

  it("does not depend on where a process runs whose HOME is empty", () => {
    vi.stubEnv("HOME", "");
    expect(isAbsolute(defaultPath({}))).toBe(true);
    vi.unstubAllEnvs();
  });
});

describe("in a file", () => {
  let file: SqliteFile;

  beforeEach(() => {
    file = sqliteFile();
  });

  afterEach(() => file.remove());

  /** Gives an entry to another process, as if that had made it. */
  function giveAway(process: string): void {
    const db = findDriver().open(file.path);
    db.prepare("UPDATE entries SET process = ?1 WHERE queue <> ''").run(process);
    db.close();
  }

  const owner = { client: "c", host: "h", pid: 1 };
  const held = { id: "held", owner, mode: "write", weight: 1, ttlMs: 60_000 } as const;
  const asked = { ...held, id: "asked", onlyIfGranted: true };

  it.each([
    ["whose pid was reused", changed({ start: "1" }), true],
    ["that still runs", changed({}), false],
    ["of another pid namespace", changed({ namespace: "1", start: "1" }), false],
  ])("the entry of a process %s", async (_whose, process, isTaken) => {
    await using client = closing(await sqliteBackend({ path: file.path }));
    await client.append("q", held);
    giveAway(process);
    const said = await client.append("q", asked);
    expect(said !== null).toBe(isTaken);
    expect((await client.list("q")).map(({ id }) => id)).toEqual([isTaken ? "asked" : "held"]);
  });

  it("an examination finds what is well, and what was left behind", async () => {
    await using client = closing(await sqliteBackend({ path: file.path }));
    await client.append("q", held);
    const well = await client.examine();
    expect(well.filter(({ level }) => level !== "ok" && level !== "warning")).toEqual([]);
    expect(well.map(({ about }) => about)).toEqual(
      expect.arrayContaining(["library", "file", "file system", "journal", "tables", "integrity", "entries"]),
    );
    giveAway(changed({ start: "1" }));
    const left = (await client.examine()).find(({ about }) => about === "entries left behind");
    expect(left).toMatchObject({ level: "warning", seen: expect.stringContaining("1 expired or of ended") });
    expect(left?.todo).toBeTypeOf("string");
  });

  it("an examination warns of a file that has another name: who uses that is not kept out", async () => {
    await using client = closing(await sqliteBackend({ path: file.path }));
    linkSync(file.path, `${file.path}-2`);
    const found = (await client.examine()).filter(({ about }) => about === "file");
    expect(found).toMatchObject([{ level: "warning", seen: expect.stringContaining("2 names") }]);
  });

  it("all clients of a process share one connection", async () => {
    await using one = closing(await sqliteBackend({ path: file.path }));
    await using two = closing(
      await sqliteBackend({ path: `${file.folder}/../${file.path.split("/").slice(-2).join("/")}` }),
    );
    await one.append("q", held);
    const open = readFileSync("/proc/self/maps", "utf8")
      .split("\n")
      .filter((line) => line.endsWith("-shm") && line.includes(file.folder));
    expect(open).toHaveLength(1);
    expect(await two.append("q", asked)).toBeNull();
  });
});

/** A backend that is closed at the end of its block. */
function closing<T extends { close(): Promise<void> }>(backend: T): T & AsyncDisposable {
  return Object.assign(backend, { [Symbol.asyncDispose]: () => backend.close() });
}
