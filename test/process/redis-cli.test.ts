/** The commands on Redis, by URL. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ask, startRedis } from "../../scripts/lib/redis-servers.mjs";
import { CliRig } from "../helpers/cli.ts";
import { tellCliStory } from "../helpers/cli-story.ts";

let redis: Awaited<ReturnType<typeof startRedis>>;
let rig: CliRig;

beforeAll(async () => {
  redis = await startRedis({ args: ["--appendonly", "yes"] });
});
afterAll(() => redis.server.remove());
beforeEach(() => {
  rig = new CliRig({ HOLDFAST_STORE: `redis://127.0.0.1:${redis.port}` });
});
afterEach(() => rig.end());

tellCliStory({
  start: async () => ({ url: `redis://127.0.0.1:${redis.port}`, close: async () => {} }),
  doctor: /ok +eviction: noeviction[^]*ok +clock: no step seen/,
});

it("nothing is left on the server", async () => {
  expect(await ask(redis.port, "dbsize")).toBe("0");
});

it("doctor says what is wrong with a server that is not fit", async () => {
  await ask(redis.port, "config", "set", "maxmemory", "100mb");
  await ask(redis.port, "config", "set", "maxmemory-policy", "allkeys-lru");
  const unfit = await rig.run(["doctor"]);
  expect([unfit.code, unfit.stdout]).toEqual([
    1,
    expect.stringMatching(/problem +eviction: allkeys-lru\n +to do: set maxmemory-policy noeviction/),
  ]);
});

it("says nothing of a server that keeps nothing but to those who ask doctor", async () => {
  const bare = await startRedis({ args: ["--appendonly", "no"] });
  const store = { HOLDFAST_STORE: `redis://127.0.0.1:${bare.port}` };
  const run = await rig.run(["run", "job", "--", "true"], store);
  const listed = await rig.run(["ls", "--json"], store);
  const doctor = await rig.run(["doctor"], store);
  await bare.server.remove();
  expect([run, listed].map(({ code, stderr }) => [code, stderr])).toEqual([
    [0, ""],
    [0, ""],
  ]);
  expect([doctor.stderr, doctor.stdout]).toEqual([
    "",
    expect.stringMatching(/warning +persistence: no append-only file\n +to do: set appendonly yes/),
  ]);
});

it("a store that is not there ends with 69", async () => {
  const nowhere = { HOLDFAST_STORE: "redis://127.0.0.1:1?deadlineMs=1100" };
  expect(await rig.run(["run", "job", "--", "true"], nowhere)).toMatchObject({ code: 69 });
});

it("verify says once what its store is not fit for", async () => {
  const bare = await startRedis({ args: ["--appendonly", "no"] });
  const words = ["--for", "1s", "--clients", "2", "--ttl", "300ms", "--faults", "none"];
  const store = { HOLDFAST_STORE: `redis://127.0.0.1:${bare.port}` };
  const { code, stderr } = await rig.run(["verify", ...words], store);
  await bare.server.remove();
  expect({ code, warnings: stderr.match(/redis: persistence:/g) }).toEqual({
    code: 0,
    warnings: ["redis: persistence:"],
  });
}, 40_000);
