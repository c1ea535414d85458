/** Calls while another connection writes: tried again in their order, without blocking, and given up in time. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Database, findDriver } from "../../src/backends/sqlite/driver.ts";
import { type SqliteBackend, sqliteBackend } from "../../src/backends/sqlite/index.ts";
import { rejection } from "../helpers/promises.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";

const owner = { client: "c", host: "h", pid: 1 };
const entry = (id: string) => ({ id, owner, mode: "write", weight: 1, ttlMs: 60_000 }) as const;

let file: SqliteFile;
let backend: SqliteBackend;
let other: Database;

beforeEach(() => {
  file = sqliteFile();
});

async function open(patienceMs?: number): Promise<void> {
  backend = await sqliteBackend({ path: file.path, patienceMs });
  // The ceiling is raised with the first token.
  await backend.append("first", entry("first"));
  other = findDriver().open(file.path);
}

afterEach(async () => {
  other.close();
  await backend.close();
  file.remove();
});

describe("while another connection writes", () => {
  it("calls wait, in the order in which they were made, and the event loop goes on", async () => {
    await open();
    other.exec("BEGIN IMMEDIATE");
    const calls = [
      backend.append("q", entry("a")),
      backend.append("q", entry("b")),
      backend.remove("q", "a"),
      backend.append("q", entry("c")),
      backend.list("q"),
    ];
    expect(calls.every((call) => call instanceof Promise)).toBe(true);
    const answered = Promise.all(calls.map((call) => Promise.resolve<unknown>(call)));
    let turns = 0;
    const counting = setInterval(() => turns++, 1);
    await sleep(60);
    clearInterval(counting);
    // A call that blocked while it waits would have let none of them through.
    expect(turns).toBeGreaterThan(1);
    other.exec("COMMIT");
    const [, , removed, , listed] = await answered;
    expect(removed).toBe(true);
    expect(listed).toMatchObject([{ id: "b" }, { id: "c" }]);
  });

  it("a call that has waited too long fails, and surely was not done", async () => {
    await open(100);
    other.exec("BEGIN IMMEDIATE");
    const error = await rejection(Promise.resolve(backend.append("q", entry("a"))));
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", message: expect.stringContaining("busy") });
    other.exec("COMMIT");
    expect(await backend.list("q")).toEqual([]);
  });

  it("what comes after calls that have failed is kept", async () => {
    await open(100);
    other.exec("BEGIN IMMEDIATE");
    await Promise.all([
      rejection(Promise.resolve(backend.append("q", entry("a")))),
      rejection(Promise.resolve(backend.remove("first", "first"))),
    ]);
    other.exec("COMMIT");
    for (const id of ["x", "y", "z"]) expect(await backend.append(id, entry(id))).not.toBeNull();
    expect(await backend.remove("y", "y")).toBe(true);
    const seen = other.prepare<{ id: string }>("SELECT id FROM entries WHERE queue <> '' ORDER BY seq").all();
    expect(seen.map(({ id }) => id)).toEqual(["first", "x", "z"]);
  });

  it("a file that is free is answered at once, without a promise", async () => {
    await open();
    const said = backend.append("q", entry("a"));
    expect(said).not.toBeInstanceOf(Promise);
    expect(backend.remove("q", "a")).toBe(true);
  });
});
