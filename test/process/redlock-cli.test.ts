/** The program `holdfast` on Redlock: what works there, what is refused and how that is said; in real processes, with real servers. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../house/repository.ts";
import { startServers, type Servers } from "../helpers/redlock.ts";

const main = join(root, "dist", "cli", "main.js");
let fleet: Servers;

beforeAll(async () => {
  fleet = await startServers(3);
});

afterAll(() => fleet.close());

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function holdfast(query: string, ...words: readonly string[]): Promise<Ended> {
  const url = `${fleet.url}?quarantineMs=0&health=ignore&deadlineMs=3000${query}`;
  const env = { ...process.env, HOLDFAST_STORE: url, HOLDFAST_TOKEN: "of-a-command-around" };
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...words], { env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code);
      resolve({ code, stdout, stderr });
    });
  });
}

const shell = (script: string): readonly string[] => ["--", "sh", "-c", script];
const again = `${process.execPath} ${main}`;

it("run holds on a majority, and gives its token to the command; ls and show see it; others are told that it is busy", async () => {
  const script = `echo $HOLDFAST_TOKEN; ${again} ls --json; ${again} show job; ${again} run job --wait 0ms -- true; echo $?`;
  const { code, stdout } = await holdfast("", "run", "job", ...shell(script));
  expect(code).toBe(0);
  const [token = "", listed = "", ...rest] = stdout.split("\n");
  expect(token).toMatch(/^\d{16}$/);
  expect(JSON.parse(listed)).toMatchObject({ name: "job", state: "held", token });
  expect(rest.join("\n")).toMatch(/^lock job\n.*\n +holds +exclusive .*\n75\n$/);
  expect(await fleet.lookers[0]?.exists("job")).toBe(0);
});

it("without tokens the command gets none, not even that of a command around it", async () => {
  const { stdout } = await holdfast("&fencing=false", "run", "job", ...shell('echo "<$HOLDFAST_TOKEN>"'));
  expect(stdout).toBe("<>\n");
});

it("run --shared is refused, with the reason", async () => {
  const { code, stderr } = await holdfast("", "run", "job", "--shared", "--", "true");
  expect(code).toBe(64);
  expect(stderr).toMatch(/it has no shared locks: .*use redis, postgres or etcd/);
});

it("release --force evicts, also a lock of another language", async () => {
  for (const looker of fleet.lookers) await looker.set("theirs", "their-own-value", "PX", 60_000, "NX");
  const listed = await holdfast("&prefix=the", "ls");
  expect(listed.stdout).toMatch(/^irs +exclusive +an unknown host/m);
  expect((await holdfast("", "ls")).stdout, "without a prefix it could be any key").not.toMatch(/theirs/);
  expect((await holdfast("", "show", "theirs")).stdout).toMatch(/holds +exclusive +an unknown host/);
  const { code } = await holdfast("", "release", "theirs", "--force", "--yes");
  expect(code).toBe(0);
  const left = await Promise.all(fleet.lookers.map((looker) => looker.exists("theirs")));
  expect(left).toEqual([0, 0, 0]);
});

it("doctor shows each node", async () => {
  const { code, stdout } = await holdfast("", "doctor");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ok +majority: 3 of 3 answer, 2 have to agree$/m);
  expect(stdout).toMatch(/^ok +clocks: /m);
  expect(stdout.match(/^warning +persistence \(127\.0\.0\.1:\d+\)/gm)).toHaveLength(3);
});
