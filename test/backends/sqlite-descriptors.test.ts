/** Clients that come and go leave no open files behind, whatever the library does with its own. */
import { readdirSync, readlinkSync } from "node:fs";
import { expect, it } from "vitest";
import { connect } from "../../src/connect.ts";
import { sqliteFile } from "../helpers/sqlite-file.ts";

/** How many descriptors of this process lead to the files of a folder. */
function open(folder: string): number {
  return readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(folder);
    } catch {
      return false;
    }
  }).length;
}

it.runIf(process.platform === "linux")("connecting again and again opens no more files", async () => {
  const file = sqliteFile();
  for (let round = 0; round < 50; round++) {
    await using locks = await connect(`sqlite:${file.path}`);
    await using lock = await locks.acquire("a");
    expect(lock.held).toBe(true);
  }
  expect(open(file.folder)).toBeLessThan(10);
  file.remove();
});
