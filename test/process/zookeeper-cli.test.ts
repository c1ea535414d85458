/** The command on ZooKeeper, by URL: runs, refuses, shows, examines and releases by force, in processes of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Build, build } from "../helpers/child.ts";
import { givenOrStarted, type ZooRig } from "../helpers/zookeeper.ts";

let built: Build;
let rig: ZooRig;

beforeAll(async () => {
  [built, rig] = await Promise.all([build(), givenOrStarted()]);
}, 60_000);
afterAll(() => Promise.all([built.remove(), rig.close()]));

function start(...args: readonly string[]): ChildProcess {
  const main = fileURLToPath(built.address("cli/main"));
  const env = { ...process.env, HOLDFAST_STORE: `zookeeper://${rig.hosts}` };
  return spawn(process.execPath, [main, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
}

function ended(child: ChildProcess): Promise<{ code: number | null; output: string }> {
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ code, output }));
  });
}

it("runs a command under a lock, one at a time, and ends it when the lock is taken away", async () => {
  const first = await ended(start("run", "job", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"));
  expect(first).toMatchObject({ code: 0, output: expect.stringMatching(/^\d+\n$/) });

  const holder = start("run", "job", "--ttl", "5s", "--", "sh", "-c", "echo begun; sleep 60");
  await new Promise((resolve) => holder.stdout?.once("data", resolve));
  const over = ended(holder);
  expect((await ended(start("run", "job", "--wait", "0ms", "--", "true"))).code).toBe(75);
  const listed = await ended(start("ls", "--json"));
  expect([listed.code, listed.output]).toEqual([0, expect.stringContaining('"job"')]);
  const doctor = await ended(start("doctor"));
  expect([doctor.code, doctor.output]).toEqual([0, expect.stringMatching(/ZooKeeper 3\.\d+/)]);

  expect((await ended(start("release", "job", "--force", "--yes"))).code).toBe(0);
  expect((await over).code).toBe(76);
}, 60_000);
