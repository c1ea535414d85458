/** What only a process of its own can show: that locks keep none alive, and that no two clients share an id. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Build, build, run } from "../helpers/child.ts";

let built: Build;

beforeAll(async () => {
  built = await build();
}, 60_000);

afterAll(() => built.remove());

const exited = { code: 0, signal: null };

describe("a process", () => {
  it("ends although it holds a lock", async () => {
    const script = `
      import { connect } from "${built.address("index")}";
      const locks = await connect("memory:exit");
      const lock = await locks.acquire("a");
      lock.signal.addEventListener("abort", () => {});
      console.log(lock.held);`;
    expect(await run(script)).toEqual({ ...exited, output: "true" });
  });

  it("ends although it waits for a lock, a wait with a bound, and permits", async () => {
    const script = `
      import { connect } from "${built.address("index")}";
      const locks = await connect("memory:exit");
      await locks.acquire("a");
      await locks.semaphore("s", 1).acquire();
      void locks.acquire("a");
      void locks.acquire("a", { wait: "1h" });
      void locks.semaphore("s", 1).acquire();
      console.log("waiting");`;
    expect(await run(script)).toEqual({ ...exited, output: "waiting" });
  });

  it("ends although a nested request waits with a bound", async () => {
    const script = `
      import { connect } from "${built.address("index")}";
      const locks = await connect("memory:exit", { reentrant: true });
      void locks.request("a", async () => {
        void locks.request("a", () => new Promise(() => {}));
        void locks.request("a", { wait: "1h" }, () => {});
      });
      console.log("inside");`;
    expect(await run(script)).toEqual({ ...exited, output: "inside" });
  });

  it("has nothing left to do after close", async () => {
    const script = `
      import { connect } from "${built.address("index")}";
      const locks = await connect("memory:exit");
      await locks.acquire("a");
      locks.acquire("a").catch(() => {});
      await locks.close();
      await new Promise((resolve) => setTimeout(resolve, 20));
      console.log(process.getActiveResourcesInfo().filter((name) => name === "Timeout").length);`;
    expect(await run(script)).toEqual({ ...exited, output: "0" });
  });
});

describe("a client's id", () => {
  it("is another in a worker and in a fork", async () => {
    const script = `
      import { fork } from "node:child_process";
      import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
      import { join } from "node:path";
      import { tmpdir } from "node:os";
      import { Worker } from "node:worker_threads";
      import { connect } from "${built.address("index")}";
      const folder = mkdtempSync(join(tmpdir(), "holdfast-ids-"));
      const file = join(folder, "id.mjs");
      writeFileSync(file, \`
        import { parentPort } from "node:worker_threads";
        import { connect } from "${built.address("index")}";
        const { clientId } = await connect("memory:ids");
        if (parentPort) parentPort.postMessage(clientId);
        else process.send(clientId, () => process.disconnect());\`);
      const first = (emitter) => new Promise((resolve) => emitter.once("message", resolve));
      const ids = [
        (await connect("memory:ids")).clientId,
        (await connect("memory:ids")).clientId,
        await first(new Worker(file, { execArgv: [] })),
        await first(fork(file, { execArgv: [] })),
      ];
      rmSync(folder, { recursive: true });
      console.log(new Set(ids).size);`;
    expect(await run(script)).toEqual({ ...exited, output: "4" });
  });
});

describe("the recent reading of the clock", () => {
  it("is not older than the idle wait that input has ended", async () => {
    const script = `
      import { spawn } from "node:child_process";
      import { systemClock } from "${built.address("core/clock")}";
      const child = spawn(process.execPath, ["-e", "setTimeout(() => console.log('wake'), 600)"]);
      setTimeout(() => systemClock.now(), 20);
      child.stdout.once("data", () => {
        const recent = systemClock.recent();
        console.log(systemClock.now() - recent < 200);
      });`;
    expect(await run(script)).toEqual({ ...exited, output: "true" });
  });

  it("does not make a lock expire that was taken after an idle wait longer than its ttl", async () => {
    const script = `
      import { spawn } from "node:child_process";
      import { connect } from "${built.address("index")}";
      const locks = await connect("memory:idle");
      const child = spawn(process.execPath, ["-e", "setTimeout(() => console.log('wake'), 600)"]);
      setTimeout(() => locks.request("a", () => {}), 20);
      child.stdout.once("data", async () => {
        const lock = await locks.acquire("b", { ttl: 200 });
        console.log(lock.held);
      });`;
    expect(await run(script)).toEqual({ ...exited, output: "true" });
  });
});
