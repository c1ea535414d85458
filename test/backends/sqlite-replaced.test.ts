/** A file that is deleted or replaced while it is in use: whoever uses the old one is told, instead of going on beside the new one. */
import { renameSync, rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { connect } from "../../src/connect.ts";
import type { LockManager } from "../../src/core/manager.ts";
import { rejection } from "../helpers/promises.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";

let file: SqliteFile;
let before: LockManager;

beforeEach(async () => {
  file = sqliteFile();
  before = await connect(`sqlite:${file.path}`, { ttl: 600 });
});

afterEach(async () => {
  await before.close();
  file.remove();
});

/** With what belongs to it: SQLite would take the log of another file for its own. */
function removeFile(): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(file.path + end, { force: true });
}

const ways: readonly (readonly [string, () => void | Promise<void>])[] = [
  ["deleted", removeFile],
  [
    "replaced",
    async () => {
      await (await connect(`sqlite:${file.path}-new`)).close();
      removeFile();
      renameSync(`${file.path}-new`, file.path);
    },
  ],
];

it.each(ways)("one that was %s is not used any more", async (_way, change) => {
  const held = await before.acquire("a");
  await change();
  await using after = await connect(`sqlite:${file.path}`);
  await using next = await after.acquire("a", { wait: 0 });
  expect(next.token).toBeGreaterThan(held.token ?? 0n);
  // Its next renewal tells it, long before its ttl is over.
  await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
  expect([held.held, next.held]).toEqual([false, true]);
  const code = "LOCK_UNAVAILABLE";
  const message = expect.stringMatching(/deleted or replaced.*connect again/);
  for (const call of [() => before.tryAcquire("b"), () => before.query()]) {
    expect(await rejection(call())).toMatchObject({ code, message, backend: "sqlite" });
  }
  expect(await held.release()).toBe("gone");
});
