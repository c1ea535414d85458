/** The cheap reading of the system clock in a process that has been idle: real time has to pass for it. */
import { spawn } from "node:child_process";
import { expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";

it("is not older than the wait for input that woke the process", async () => {
  const child = spawn(process.execPath, ["-e", "setTimeout(() => console.log('wake'), 700)"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const read = setTimeout(() => systemClock.now(), 50);
  const behindMs = await new Promise<number>((resolve) => {
    child.stdout.once("data", () => {
      const recent = systemClock.recent();
      resolve(systemClock.now() - recent);
    });
  });
  clearTimeout(read);
  expect(behindMs).toBeLessThan(200);
});
