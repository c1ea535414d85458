/** connect() without an argument, and with the URL of a file. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { join } from "node:path";
import { connect } from "../../src/connect.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";
import { existsSync } from "node:fs";

let file: SqliteFile;

beforeEach(() => {
  file = sqliteFile();
  vi.stubEnv("XDG_STATE_HOME", file.folder);
});

afterEach(() => {
  vi.unstubAllEnvs();
  file.remove();
});

it.runIf(process.platform === "linux")("uses the file of this user, and shares it", async () => {
  await using one = await connect();
  await using two = await connect("sqlite:");
  await using three = await connect(`sqlite:${join(file.folder, "holdfast", "locks.db")}`);
  await using held = await one.acquire("a");
  expect(held.held).toBe(true);
  expect(one.traits).toMatchObject({ scope: "machine", wake: "push" });
  expect([await two.tryAcquire("a"), await three.tryAcquire("a")]).toEqual([null, null]);
  expect(existsSync(join(file.folder, "holdfast", "locks.db"))).toBe(true);
});

it("takes a path with one slash or three, as it is", async () => {
  const path = join(file.folder, "a b%20c#d?e.db");
  await using one = await connect(`sqlite:${path}`);
  await using two = await connect(`sqlite://${path}`);
  await using held = await one.acquire("a");
  expect(held.held).toBe(true);
  expect(await two.tryAcquire("a")).toBeNull();
  expect(existsSync(path)).toBe(true);
});

it("takes ~/ for the home of this user, as shells do in some places and not in others", async () => {
  vi.stubEnv("HOME", file.folder);
  await using one = await connect("sqlite:~/of mine/locks.db");
  await using two = await connect(`sqlite:${join(file.folder, "of mine", "locks.db")}`);
  await using held = await one.acquire("a");
  expect(held.held).toBe(true);
  expect(await two.tryAcquire("a")).toBeNull();
});

it("refuses a host, which a file does not have", async () => {
  await expect(connect("sqlite://locks.db")).rejects.toMatchObject({
    code: "LOCK_INVALID",
    message: expect.stringContaining("sqlite:/path"),
  });
});

it("excludes only those who use the same file", async () => {
  await using one = await connect(`sqlite:${file.path}`);
  await using two = await connect(`sqlite:${file.path}-other`);
  await using held = await one.acquire("a");
  await using other = await two.acquire("a", { wait: 0 });
  expect([held.held, other.held]).toEqual([true, true]);
});
