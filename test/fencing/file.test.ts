/** The guard for files: the table of cases, its details, and many real processes that are killed and paused while they write. */
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { fileGuard } from "../../src/fencing/index.ts";
import { type Build, build } from "../helpers/child.ts";
import { startWorker, type Worker } from "../helpers/worker.ts";
import type { Subject } from "./cases.ts";
import { guardCases } from "./guard-cases.ts";

let folder = "";
/** In memory, where there is such a place: the table of cases writes thousands of times. */
let quickFolder = "";
let built: Build;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-fence-"));
  quickFolder = await mkdtemp(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "holdfast-fence-"));
  built = await build();
});

afterAll(async () => {
  await rm(folder, { recursive: true });
  await rm(quickFolder, { recursive: true });
  await built.remove();
});

let files = 0;
const freshPath = (where = folder): string => join(where, `file-${++files}.txt`);

function subjectAt(path: string): Subject {
  const guard = fileGuard({ durable: false });
  return {
    write: (token, value) => guard.write(path, token, value),
    read: () => readFile(path, "utf8").catch(() => null),
    show: (token) => guard.show(path, token),
    highest: () => guard.highest(path),
    restart: async () => subjectAt(path),
  };
}

guardCases("files", async () => subjectAt(freshPath(quickFolder)), true);

describe("a guarded file", () => {
  it("is on disk with its token before the call resolves, and keeps its mode", async () => {
    const path = freshPath();
    await writeFile(path, "by hand");
    await chmod(path, 0o640);
    await fileGuard().write(path, 7n, new Uint8Array([0, 255, 10]));
    expect([...(await readFile(path))]).toEqual([0, 255, 10]);
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect(await readdir(join(folder, `.file-${files}.txt.fence`))).toEqual(["floor"]);
  });

  it("is the same by whatever path it is reached", async () => {
    const path = freshPath();
    await fileGuard().write(path, 7n, "new");
    const link = join(folder, "link.txt");
    await symlink(path, link);
    await expect(fileGuard().write(link, 6n, "late")).rejects.toMatchObject({
      code: "LOCK_STALE_TOKEN",
      backend: "file",
      message: expect.stringContaining(link),
    });
    await fileGuard().write(link, 8n, "newer");
    expect(await readFile(path, "utf8")).toBe("newer");
  });

  it("is what a link names, also if that is not there yet", async () => {
    const [path, first, second] = [freshPath(), join(folder, "first.txt"), join(folder, "second.txt")];
    await symlink(basename(path), first);
    await symlink(first, second);
    await fileGuard().write(second, 7n, "new");
    expect(await readFile(path, "utf8")).toBe("new");
    expect((await lstat(second)).isSymbolicLink() && (await lstat(first)).isSymbolicLink()).toBe(true);
    await expect(fileGuard().write(path, 6n, "late")).rejects.toMatchObject({ code: "LOCK_STALE_TOKEN" });
    const ring = join(folder, "ring.txt");
    await symlink(ring, ring);
    await expect(fileGuard().write(ring, 7n, "x")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
  });

  it("says what went wrong on the disk, and that nothing was written", async () => {
    const nowhere = join(folder, "missing", "file.txt");
    await expect(fileGuard().write(nowhere, 7n, "x")).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      cause: expect.objectContaining({ code: "ENOENT" }),
    });
    const path = freshPath();
    await mkdir(path);
    await expect(fileGuard().write(path, 7n, "x")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    const damaged = freshPath();
    await fileGuard().write(damaged, 7n, "x");
    await writeFile(join(folder, `.file-${files}.txt.fence`, "floor"), "seven");
    await expect(fileGuard().write(damaged, 8n, "y")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(await readFile(damaged, "utf8")).toBe("x");
  });
});

/** Writes with ever newer tokens, sometimes long after it has got one, and looks at what is there after each write. */
function writerScript(path: string): string {
  return `
    import { readFileSync } from "node:fs";
    import { fileGuard } from ${JSON.stringify(built.address("fencing/index"))};
    const guard = fileGuard({ durable: false });
    const path = ${JSON.stringify(path)};
    console.log("ready");
    for (;;) {
      const token = process.hrtime.bigint();
      if (Math.random() < 0.3) await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      try {
        if (Math.random() < 0.1) {
          await guard.show(path, token);
          continue;
        }
        await guard.write(path, token, String(token).repeat(300));
        const seen = BigInt(readFileSync(path, "utf8").slice(0, String(token).length));
        console.log(seen >= token ? "ok " + token : "failed undone by " + seen + " " + token);
      } catch (error) {
        console.log((error.code === "LOCK_STALE_TOKEN" ? "stale " : "failed " + error.message + " ") + token);
      }
    }`;
}

interface Tally {
  ok: number;
  stale: number;
  killed: number;
  paused: number;
}

it("many processes that are killed and paused: the file never goes back", async () => {
  const path = freshPath();
  await writeFile(path, "");
  const tally: Tally = { ok: 0, stale: 0, killed: 0, paused: 0 };
  const failed: string[] = [];
  let highestOk = 0n;
  const listen = async (worker: Worker): Promise<void> => {
    const hear = async (word: string, act: (token: bigint) => void): Promise<void> => {
      for (;;) act(BigInt((await worker.said(word)).split(" ").at(-1) ?? "0"));
    };
    await Promise.allSettled([
      hear("ok", (token) => {
        tally.ok += 1;
        if (token > highestOk) highestOk = token;
      }),
      hear("stale", () => void (tally.stale += 1)),
      worker.said("failed").then((text) => void failed.push(text)),
    ]);
  };
  const start = async (): Promise<Worker> => {
    const worker = startWorker(writerScript(path));
    onTestFinished(() => worker.end());
    await worker.said("ready");
    void listen(worker);
    return worker;
  };
  const workers = await Promise.all(Array.from({ length: 6 }, start));

  let last = 0n;
  let reads = 0;
  const lookAt = (): void => {
    const text = readFileSync(path, "utf8");
    if (text === "") return;
    const token = BigInt(text.slice(0, text.length / 300));
    // Whole, and never older than what was seen before.
    expect(text).toBe(String(token).repeat(300));
    expect(token >= last, `the file went back from ${last} to ${token}`).toBe(true);
    last = token;
    reads += 1;
  };
  // Until it was a fight.
  const isOver = (): boolean =>
    tally.ok >= 200 && tally.stale >= 50 && tally.killed >= 5 && tally.paused >= 12 && reads >= 1_000;
  while (!isOver()) {
    const at = Math.floor(Math.random() * workers.length);
    const worker = workers[at];
    for (let look = 0; look < 20; look++) lookAt();
    if (worker === undefined) continue;
    if (Math.random() < 0.3) {
      await worker.end();
      tally.killed += 1;
      workers[at] = await start();
    } else {
      worker.signal("SIGSTOP");
      tally.paused += 1;
      for (let look = 0; look < 20; look++) {
        lookAt();
        await pause(1);
      }
      worker.signal("SIGCONT");
    }
  }
  for (const worker of workers) worker.signal("SIGCONT");
  await Promise.all(workers.map((worker) => worker.end()));
  lookAt();
  expect(failed).toEqual([]);
  expect(last >= highestOk, "an accepted write was undone").toBe(true);
  // What the dead have left behind the next holder sweeps.
  await fileGuard().write(path, process.hrtime.bigint(), "the end");
  expect(await readdir(join(folder, `.file-${files}.txt.fence`))).toEqual(["floor"]);
}, 120_000);
