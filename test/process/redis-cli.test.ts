/** The command on Redis, by URL: runs, waits, refuses, shows, watches, examines and releases by force, in real processes. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ask, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { CliRig, type Running } from "../helpers/cli.ts";

let redis: Awaited<ReturnType<typeof startRedis>>;
let rig: CliRig;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  redis = await startRedis({ args: ["--appendonly", "yes"] });
  env = { HOLDFAST_STORE: `redis://127.0.0.1:${redis.port}` };
});
afterAll(() => redis.server.remove());
beforeEach(() => {
  rig = new CliRig();
});
afterEach(() => rig.end());

/** A process that holds until its stdin is closed, and the token that it has. */
async function holder(name: string): Promise<{ running: Running; token: string }> {
  const section = ["--", "sh", "-c", "echo held $HOLDFAST_TOKEN; exec cat"];
  const running = rig.start(["run", name, "--ttl", "5s", "--metadata", "nightly", ...section], env);
  const [, token = ""] = await running.until(/held (\d+)/);
  return { running, token };
}

it("run gives a token, waits as long as it is told to, and says when it is busy", async () => {
  const first = await holder("job");
  expect(await rig.run(["run", "job", "--wait", "0ms", "--", "true"], env)).toMatchObject({ code: 75 });
  const second = rig.start(
    ["run", "job", "--wait", "30s", "--", "sh", "-c", "echo then $HOLDFAST_TOKEN"],
    env,
  );
  const watch = rig.start(["watch", "--every", "50ms"], env);
  await watch.until(/job.*waits|waits.*job/);
  expect(await first.running.finish()).toMatchObject({ code: 0 });
  const { code, stdout } = await second.ended;
  const [, token = "0"] = /then (\d+)/.exec(stdout) ?? [];
  expect(code).toBe(0);
  expect(BigInt(token)).toBeGreaterThan(BigInt(first.token));
  expect(await ask(redis.port, "dbsize")).toBe("0");
});

it("ls and show tell who holds and who waits", async () => {
  const { running, token } = await holder("order:42");
  const waiting = rig.start(["run", "order:42", "--", "true"], env);
  const watch = rig.start(["watch", "--every", "50ms"], env);
  await watch.until(/waits/);
  const listed = (await rig.run(["ls", "order:"], env)).stdout;
  expect(listed).toMatch(new RegExp(`order:42 +exclusive +\\S+:${running.pid} sh +${token} .* 1  nightly`));
  expect((await rig.run(["show", "order:42"], env)).stdout).toMatch(/holds .* nightly\n +waits .*true/);
  await running.finish();
  expect((await waiting.ended).code).toBe(0);
  expect((await rig.run(["ls"], env)).stdout).toBe("nothing is locked\n");
});

it("release --force takes a lock away, and its command is ended", async () => {
  const { running } = await holder("stuck");
  expect(await rig.run(["release", "stuck", "--force", "--yes"], env)).toMatchObject({ code: 0 });
  expect((await running.ended).code).toBe(76);
  expect((await rig.run(["show", "stuck"], env)).stdout).toBe("stuck is free\n");
});

it("doctor finds nothing wrong with a server that is fit, and says what is wrong with one that is not", async () => {
  const fit = await rig.run(["doctor"], env);
  expect([fit.code, fit.stdout]).toEqual([0, expect.stringMatching(/ok +eviction: noeviction/)]);
  expect(fit.stdout).toMatch(/ok +clock: no step seen/);
  await ask(redis.port, "config", "set", "maxmemory", "100mb");
  await ask(redis.port, "config", "set", "maxmemory-policy", "allkeys-lru");
  const unfit = await rig.run(["doctor"], env);
  expect([unfit.code, unfit.stdout]).toEqual([
    1,
    expect.stringMatching(/problem +eviction: allkeys-lru\n +to do: set maxmemory-policy noeviction/),
  ]);
});

it("a store that is not there ends with 69", async () => {
  const nowhere = { HOLDFAST_STORE: "redis://127.0.0.1:1?deadlineMs=1100" };
  expect(await rig.run(["run", "job", "--", "true"], nowhere)).toMatchObject({ code: 69 });
});
