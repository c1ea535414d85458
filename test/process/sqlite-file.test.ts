/** Files that cannot be used, a disk that is full, and processes that all make the same file at once. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findDriver } from "../../src/backends/sqlite/driver.ts";
import { networkFileSystem } from "../../src/backends/sqlite/file.ts";
import { sqliteBackend } from "../../src/backends/sqlite/index.ts";
import { connect } from "../../src/connect.ts";
import { type Build, build, run } from "../helpers/child.ts";
import { rejection } from "../helpers/promises.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";
import { startWorker } from "../helpers/worker.ts";

let built: Build;
let file: SqliteFile;

beforeAll(async () => {
  built = await build();
}, 60_000);

afterAll(() => built.remove());

beforeEach(() => {
  file = sqliteFile();
});

afterEach(() => file.remove());

const isRoot = process.getuid?.() === 0;

function refused(path: string): Promise<unknown> {
  return rejection(connect(`sqlite:${path}`));
}

/** An error that names the file and says what to do. */
function saying(code: string, ...texts: readonly string[]): unknown {
  const message = expect.stringMatching(new RegExp(texts.map((text) => `(?=.*(?:${text}))`).join(""), "s"));
  return expect.objectContaining({ name: "LockError", code, backend: "sqlite", message });
}

describe("a file that cannot be used is refused", () => {
  it("if it is no database, and is left as it was", async () => {
    const content = randomBytes(5_000);
    writeFileSync(file.path, content);
    expect(await refused(file.path)).toEqual(
      saying("LOCK_UNSUPPORTED", file.path, "not a SQLite database", "another path"),
    );
    expect(readFileSync(file.path)).toEqual(content);
  });

  it("if it is a directory or a device, and nothing is made beside it", async () => {
    const directory = join(file.folder, "directory");
    mkdirSync(directory);
    for (const path of [directory, "/dev/null"]) {
      expect(await refused(path)).toEqual(saying("LOCK_UNSUPPORTED", path, "not a file", "another path"));
    }
    expect(readdirSync(file.folder)).toEqual(["directory"]);
  });

  it("if it belongs to another program, and is left as it was", async () => {
    const db = findDriver().open(file.path);
    db.exec("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    db.close();
    const content = readFileSync(file.path);
    expect(await refused(file.path)).toEqual(
      saying("LOCK_UNSUPPORTED", file.path, "another program", "another path"),
    );
    expect(readFileSync(file.path)).toEqual(content);
  });

  it.each([
    ["a newer", 99, "update"],
    ["an older", 1, "delete it"],
  ])("if its tables are of %s version", async (age, version, todo) => {
    await (await sqliteBackend({ path: file.path })).close();
    const db = findDriver().open(file.path);
    db.exec(`PRAGMA user_version = ${version}`);
    db.close();
    expect(await refused(file.path)).toEqual(
      saying("LOCK_UNSUPPORTED", file.path, age, String(version), todo),
    );
  });

  it("if it is damaged", async () => {
    await run(`
      import { sqliteBackend } from "${built.address("backends/sqlite/index")}";
      await sqliteBackend({ path: "${file.path}" });`);
    const db = findDriver().open(file.path);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
    const damaged = readFileSync(file.path);
    damaged.fill(0xff, 100);
    writeFileSync(file.path, damaged);
    expect(await refused(file.path)).toEqual(saying("LOCK_UNAVAILABLE", file.path, "damaged", "delete"));
  });

  it("if its directory cannot be made", async () => {
    writeFileSync(join(file.folder, "plain"), "");
    const path = join(file.folder, "plain", "locks.db");
    expect(await refused(path)).toEqual(saying("LOCK_UNAVAILABLE", path, "ENOTDIR|EEXIST", "another path"));
  });

  it("if its path is too long for SQLite, or has a NUL in it", async () => {
    const long = join(file.folder, ...Array.from({ length: 9 }, () => "x".repeat(99)), "locks.db");
    expect(await refused(long)).toEqual(saying("LOCK_UNAVAILABLE", long, "cannot be opened"));
    expect(await refused(`${file.path}\0`)).toMatchObject({ name: "TypeError", code: "LOCK_INVALID" });
  });

  it("if its directory may not be written", async () => {
    const closed = join(file.folder, "closed");
    mkdirSync(closed, { mode: 0o500 });
    chmodSync(file.folder, 0o755);
    chmodSync(closed, 0o555);
    // Permissions do not bind root, so the child becomes somebody else; the library is loaded before that.
    const script = `
      import { sqliteBackend } from "${built.address("backends/sqlite/index")}";
      await (await sqliteBackend({ path: "${file.path}" })).close();
      if (${isRoot}) process.setuid(65534);
      const error = await sqliteBackend({ path: "${join(closed, "locks.db")}" }).catch((error) => error);
      console.log(error.name, error.code, error.message);`;
    const { output } = await run(script);
    expect(output).toMatch(/^LockError LOCK_UNAVAILABLE .*closed\/locks\.db.*EACCES.*permissions/);
  });

  it("if it belongs to another user", async () => {
    writeFileSync(file.path, "");
    chmodSync(file.path, isRoot ? 0o600 : 0o000);
    chmodSync(file.folder, 0o777);
    const script = `
      import { sqliteBackend } from "${built.address("backends/sqlite/index")}";
      await (await sqliteBackend({ path: "${join(file.folder, "mine.db")}" })).close();
      if (${isRoot}) process.setuid(65534);
      const error = await sqliteBackend({ path: "${file.path}" }).catch((error) => error);
      console.log(error.name, error.code, error.message);`;
    const { output } = await run(script);
    expect(output).toMatch(/^LockError LOCK_UNAVAILABLE .*locks\.db.*EACCES.*permissions/);
  });

  it("if it is on a network file system, as far as Linux tells", () => {
    const known = [0x6969, 0xff534d42, 0xfe534d42, 0x517b, 0x01021997, 0x5346414f, 0x00c36400, 0x0bd00bd0];
    for (const type of known) {
      expect(networkFileSystem(type)).toBeTypeOf("string");
      // statfs gives the type as a signed number on some machines.
      expect(networkFileSystem(type | 0)).toBe(networkFileSystem(type));
    }
    for (const local of [0xef53, 0x9123683e, 0x58465342, 0x01021994, 0x794c7630]) {
      expect(networkFileSystem(local)).toBeUndefined();
    }
  });

  it("if there is no library for it", async () => {
    const error = await rejection(sqliteBackend({ path: file.path, driver: "better-sqlite3" }));
    expect(error).toEqual(saying("LOCK_UNSUPPORTED", "22.13", "npm install libsql"));
  });
});

it("works and closes where no socket can be made", async () => {
  writeFileSync(`${file.path}-hubs`, "in the way");
  const locks = await connect(`sqlite:${file.path}`);
  expect(await locks.request("a", (lock) => lock.held)).toBe(true);
  await locks.close();
});

it("the file, its log and its directory are for their user alone", async () => {
  const path = join(file.folder, "new", "deep", "locks.db");
  await using locks = await connect(`sqlite:${path}`);
  await locks.acquire("a");
  const modes = ["", "-wal", "-shm"].map((ending) => statSync(path + ending).mode & 0o777);
  expect(modes).toEqual([0o600, 0o600, 0o600]);
  expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
  expect(statSync(`${path}-hubs`).mode & 0o777).toBe(0o700);
});

it("a full disk refuses with a typed error, grants nothing by halves, and goes on when there is space", async () => {
  const disk = join(file.folder, "disk");
  mkdirSync(disk);
  const path = join(disk, "locks.db");
  // A real file system that is full; without root, a real limit on the size of files does the same to the log.
  if (isRoot) execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k,mode=700", "none", disk]);
  const script = `
    import { rmSync, writeFileSync } from "node:fs";
    import { sqliteBackend } from "${built.address("backends/sqlite/index")}";
    import { LockManager } from "${built.address("core/manager")}";
    process.on("SIGXFSZ", () => {});
    const backend = await sqliteBackend({ path: "${path}" });
    const locks = new LockManager(backend);
    const held = await locks.acquire("before");
    let filled = 0;
    try {
      for (; ${isRoot}; filled++) writeFileSync("${join(disk, "fill")}", Buffer.alloc(4096), { flag: "a" });
    } catch {}
    const errors = [];
    const granted = [];
    for (let turn = 0; turn < 400 && errors.length < 5; turn++) {
      try {
        granted.push((await locks.acquire("a" + turn, { metadata: "x".repeat(4000) })).name);
      } catch (error) {
        errors.push(error.code + " " + error.message);
      }
    }
    const queues = new Set(await backend.queues(""));
    console.log(JSON.stringify({
      errors,
      missing: granted.filter((name) => !queues.has(name)),
      tooMany: [...queues].filter((name) => name !== "before" && !granted.includes(name)),
      stillHeld: held.held,
    }));
    if (${isRoot}) {
      rmSync("${join(disk, "fill")}");
      const after = await locks.acquire("after");
      console.log(after.held, await after.release());
    }`;
  try {
    const limited = `ulimit -f 512; exec "$0" --input-type=module -e "$1"`;
    const output = isRoot
      ? (await run(script)).output
      : execFileSync("sh", ["-c", limited, process.execPath, script], { encoding: "utf8" });
    const [seen = "{}", after] = output.split("\n");
    const { errors, ...rest } = JSON.parse(seen);
    expect(errors).toHaveLength(5);
    for (const error of errors) expect(error).toMatch(/^LOCK_UNAVAILABLE .*locks\.db/);
    if (isRoot) expect(errors[0]).toMatch(/disk is full.*free some space/);
    expect(rest).toEqual({ missing: [], tooMany: [], stillHeld: true });
    if (isRoot) expect(after).toBe("true released");
  } finally {
    if (isRoot) execFileSync("umount", [disk]);
  }
});

it("processes that all open a file that is not there yet make it once, and share it", async () => {
  const workers = Array.from({ length: 8 }, () =>
    startWorker(`
      import { connect } from "${built.address("index")}";
      setInterval(() => {}, 1000);
      console.log("ready");
      process.stdin.once("data", async () => {
        const locks = await connect("sqlite:${file.path}");
        const lock = await locks.tryAcquire("first", { ttl: "10m" });
        console.log("got", lock !== null);
      });`),
  );
  try {
    await Promise.all(workers.map((worker) => worker.said("ready")));
    for (const worker of workers) worker.tell("go");
    const got = await Promise.all(workers.map((worker) => worker.said("got")));
    expect(got.filter((one) => one === "true")).toHaveLength(1);
  } finally {
    await Promise.all(workers.map((worker) => worker.end()));
  }
});
