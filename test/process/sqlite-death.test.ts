/** Processes that are killed or paused while they hold or wait for a lock in a SQLite file. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { sqliteBackend } from "../../src/backends/sqlite/index.ts";
import { connect } from "../../src/connect.ts";
import { type Build, build } from "../helpers/child.ts";
import { type SqliteFile, sqliteFile } from "../helpers/sqlite-file.ts";
import { startWorker, type Worker } from "../helpers/worker.ts";

let built: Build;
let file: SqliteFile;
let workers: Worker[] = [];

beforeAll(async () => {
  built = await build();
}, 60_000);

afterAll(() => built.remove());

beforeEach(() => {
  file = sqliteFile();
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  workers = [];
  file.remove();
});

/** A worker that asks for a lock, says when it holds it and when it has lost it, and releases it when told so. */
function asks(name: string, options = "{}"): Worker {
  const worker = startWorker(`
    import { connect } from "${built.address("index")}";
    setInterval(() => {}, 1000);
    const locks = await connect("sqlite:${file.path}");
    const asked = locks.acquire(${JSON.stringify(name)}, ${options});
    console.log("asked");
    const lock = await asked;
    lock.signal.addEventListener("abort", () => console.log("lost", lock.lostBecause, lock.held));
    console.log("holds", String(lock.token), Date.now());
    process.stdin.once("data", async () => console.log("released", await lock.release()));`);
  workers.push(worker);
  return worker;
}

const isRoot = process.getuid?.() === 0;

/** What a script says that runs in namespaces of its own, after a preparation there. */
function apart(flags: readonly string[], preparation: string, script: string): string {
  const command = `${preparation} "$0" --input-type=module -e "$1"; true`;
  const args = [...flags, "sh", "-c", command, process.execPath, script];
  return execFileSync("unshare", args, { encoding: "utf8" }).trim();
}

/** Waits until so many entries stand in a queue. */
async function queued(count: number): Promise<void> {
  await using locks = await connect(`sqlite:${file.path}`);
  await expect
    .poll(
      async () => {
        const { held, pending } = await locks.query();
        return held.length + pending.length;
      },
      { timeout: 10_000, interval: 5 },
    )
    .toBe(count);
}

it("grants the lock of a killed holder at once, long before its ttl", async () => {
  const holder = asks("a", `{ ttl: "10m" }`);
  const token = BigInt((await holder.said("holds")).split(" ")[0] ?? 0);
  const waiter = asks("a", `{ ttl: "10m" }`);
  await waiter.said("asked");
  await queued(2);
  const killedAt = Date.now();
  await holder.end();
  const [next = "0", at = "0"] = (await waiter.said("holds")).split(" ");
  expect(Number(at) - killedAt).toBeLessThan(500);
  expect(BigInt(next)).toBeGreaterThan(token);
});

it("is not held up by a waiter that was killed in the middle of the queue", async () => {
  const holder = asks("a", `{ ttl: "10m" }`);
  await holder.said("holds");
  const killed = asks("a", `{ ttl: "10m" }`);
  await queued(2);
  const last = asks("a", `{ ttl: "10m" }`);
  await queued(3);
  await killed.end();
  await queued(2);
  const releasedAt = Date.now();
  holder.tell("release");
  const [, at = "0"] = (await last.said("holds")).split(" ");
  expect(Number(at) - releasedAt).toBeLessThan(500);
});

it("grants to all readers when the writer that they wait for is killed", async () => {
  const writer = asks("a", `{ ttl: "10m" }`);
  await writer.said("holds");
  const readers = [1, 2, 3].map(() => asks("a", `{ ttl: "10m", mode: "shared" }`));
  await queued(4);
  await writer.end();
  await Promise.all(readers.map((reader) => reader.said("holds")));
});

it("gives the permits of a killed holder to the next", async () => {
  const script = (weight: number): string => `
    import { connect } from "${built.address("index")}";
    setInterval(() => {}, 1000);
    const locks = await connect("sqlite:${file.path}");
    await locks.semaphore("s", 3).acquire({ weight: ${weight}, ttl: "10m" });
    console.log("holds");`;
  const [two, one] = [startWorker(script(2)), startWorker(script(1))];
  workers.push(two, one);
  await Promise.all([two.said("holds"), one.said("holds")]);
  const waiter = startWorker(script(2));
  workers.push(waiter);
  await queued(3);
  await two.end();
  await waiter.said("holds");
});

it("does not refuse because of an owner that is dead", async () => {
  const holder = asks("a", `{ ttl: "10m" }`);
  await holder.said("holds");
  await using locks = await connect(`sqlite:${file.path}`);
  expect(await locks.tryAcquire("a")).toBeNull();
  await holder.end();
  expect((await locks.tryAcquire("a"))?.held).toBe(true);
});

it("lets a holder that was stopped past its ttl know that it has lost, and gives the next a larger token", async () => {
  const holder = asks("a", `{ ttl: 500 }`);
  const token = BigInt((await holder.said("holds")).split(" ")[0] ?? 0);
  holder.signal("SIGSTOP");
  const waiter = asks("a", `{ ttl: "10m" }`);
  const [next = "0"] = (await waiter.said("holds")).split(" ");
  expect(BigInt(next)).toBeGreaterThan(token);
  holder.signal("SIGCONT");
  expect(await holder.said("lost")).toMatch(/ false$/);
});

it("leaves no socket behind for the process that was killed", async () => {
  const holder = asks("a", `{ ttl: "10m" }`);
  await holder.said("holds");
  const waiter = asks("a", `{ ttl: "10m" }`);
  await queued(2);
  await holder.end();
  await waiter.said("holds");
  await expect.poll(() => file.sockets().length, { timeout: 5_000 }).toBe(1);
});

it("leaves no socket behind where nobody waited: whoever comes next takes it away with the entries", async () => {
  const holder = asks("a", `{ ttl: "10m" }`);
  await holder.said("holds");
  await holder.end();
  await using locks = await connect(`sqlite:${file.path}`);
  await expect.poll(() => file.sockets(), { timeout: 5_000 }).toEqual([]);
  expect((await locks.query()).held).toEqual([]);
});

it("goes on while it waits for another process, until it is granted or its wait is over", async () => {
  const other = asks("a", `{ ttl: "10m" }`);
  await other.said("holds");
  const patient = startWorker(`
    import { connect } from "${built.address("index")}";
    const locks = await connect("sqlite:${file.path}");
    await locks.request("a", { wait: 500 }, () => {}).catch(({ code }) => console.log("first", code));
    console.log("second", await locks.request("a", () => "granted"));`);
  workers.push(patient);
  expect(await patient.said("first")).toBe("LOCK_TIMEOUT");
  await queued(2);
  other.tell("release");
  expect(await patient.said("second")).toBe("granted");
});

it("ends although it holds a lock, waits for a lock of its own, or has given up waiting for another process", async () => {
  const other = asks("b", `{ ttl: "10m" }`);
  await other.said("holds");
  const worker = startWorker(`
    import { connect } from "${built.address("index")}";
    const locks = await connect("sqlite:${file.path}");
    await locks.acquire("a");
    void locks.acquire("a");
    await locks.acquire("b", { wait: 100 }).catch(({ code }) => console.log("waited", code));`);
  expect(await worker.said("waited")).toBe("LOCK_TIMEOUT");
  await expect(worker.said("never")).rejects.toThrow("ended");
});

it.runIf(isRoot)(
  "is kept out of a lock by a process that sees another name of the same boot, as in a container",
  async () => {
    const holder = asks("a", `{ ttl: "10m" }`);
    await holder.said("holds");
    const name = join(file.folder, "boot_id");
    writeFileSync(name, "11111111-2222-3333-4444-555555555555\n");
    const script = `
      import { connect } from "${built.address("index")}";
      const locks = await connect("sqlite:${file.path}");
      console.log(await locks.tryAcquire("a"));
      await locks.close();`;
    const mount = `mount --bind ${name} /proc/sys/kernel/random/boot_id &&`;
    expect(apart(["--mount"], mount, script)).toBe("null");
    await using locks = await connect(`sqlite:${file.path}`);
    expect(await locks.tryAcquire("a")).toBeNull();
  },
);

it.runIf(isRoot)("is not judged by the processes of another pid namespace whose /proc it sees", () => {
  const script = `
    import { isGone, nameOfThisProcess } from "${built.address("backends/sqlite/machine")}";
    const [pid, start, ...rest] = nameOfThisProcess().split(".");
    console.log(start, isGone([pid, "1", ...rest].join(".")), isGone(["zzzz", "1", ...rest].join(".")));`;
  expect(apart(["--pid", "--fork"], "", script)).toBe("0 false true");
});

it("a process that is stopped in the middle of a write keeps others out, who say which it is, until it goes on", async () => {
  await using locks = await connect(await sqliteBackend({ path: file.path, patienceMs: 300 }));
  const writer = startWorker(`
    import { findDriver } from "${built.address("backends/sqlite/driver")}";
    setInterval(() => {}, 1000);
    const db = findDriver().open("${file.path}");
    db.exec("BEGIN IMMEDIATE");
    console.log("writes");
    process.stdin.once("data", () => db.exec("ROLLBACK"));`);
  workers.push(writer);
  await writer.said("writes");
  const refused = async (why: string): Promise<void> => {
    const message = expect.stringContaining(why);
    await expect(locks.acquire("a")).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE", message });
  };
  await refused(`now it is pid ${writer.pid}; try again`);
  writer.signal("SIGSTOP");
  await refused(`pid ${writer.pid} was stopped in the middle of a write, and keeps all others out`);
  writer.signal("SIGCONT");
  writer.tell("go on");
  await (await locks.acquire("a")).release();
});
