/** `holdfast verify` in real processes: what it says, what it writes, and that it leaves nothing, not even when it is cut short. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parseHistory } from "../../src/verify/history-text.ts";
import { locate } from "../../src/verify/servers/programs.ts";
import { CliRig } from "../helpers/cli.ts";
import { makeClocks } from "../helpers/clocks.ts";

let rig: CliRig;
let temporary: string;

beforeEach(() => {
  rig = new CliRig();
  temporary = join(rig.folder, "tmp");
  mkdirSync(temporary);
});

afterEach(() => rig.end());

it("judges a store that keeps its promises as valid, and writes the report and the history", async () => {
  const words = ["--for", "9s", "--ttl", "500ms", "--clients", "3", "--faults", "pause,kill,hang"];
  const { code, stdout, stderr } = await rig.run(["verify", ...words, "--seed", "4", "--out", "seen"], {
    TMPDIR: temporary,
  });
  expect(stdout + stderr).toMatch(/^valid: see seen\/report\.html and seen\/history\.jsonl$/m);
  expect(code).toBe(0);
  for (const row of ["M1", "M3", "L2", "A1"]) expect(stdout).toMatch(new RegExp(`^${row} .* 0 +holds$`, "m"));
  expect(stdout).toMatch(/^fenced +\d+ +0 +\d+ +0 +0$/m);
  const events = parseHistory(readFileSync(join(rig.folder, "seen/history.jsonl"), "utf8"));
  // A client on a busy machine may also stand still by itself.
  const faults = new Set(events.map(({ fault }) => fault).filter((fault) => fault !== "stall"));
  expect(faults).toEqual(new Set([undefined, "pause", "kill", "hang"]));
  const locks = new Set(events.flatMap(({ lock }) => (lock === undefined ? [] : [lock])));
  const prefixes = new Set([...locks].map((lock) => /^verify\/[0-9a-f]{12}\//.exec(lock)?.[0]));
  expect(prefixes.size).toBe(1);
  expect(readFileSync(join(rig.folder, "seen/report.html"), "utf8")).toContain("<title>holdfast verify");
  expect(readdirSync(temporary)).toEqual([]);
}, 60_000);

it("speaks JSON", async () => {
  const words = ["verify", "--json", "--for", "1s", "--clients", "2", "--ttl", "300ms", "--faults", "none"];
  const { code, stdout, stderr } = await rig.run(words);
  expect(code, stdout + stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ verdict: "valid", clients: 2, ttlMs: 300, faults: {} });
}, 40_000);

it("does not blame a store for a wall clock that is set forward, at which locks end early", async () => {
  const [clock] = await makeClocks(1);
  let aheadMs = 0;
  const setting = setInterval(() => void clock?.set((aheadMs += 5_000)), 700);
  try {
    const words = ["verify", "--json", "--for", "8s", "--clients", "2", "--ttl", "500ms", "--faults", "none"];
    const { code, stdout, stderr } = await rig.run([...words, "--out", "seen"], clock?.env);
    expect(code, stdout + stderr).toBe(0);
    const events = parseHistory(readFileSync(join(rig.folder, "seen/history.jsonl"), "utf8"));
    expect(events.filter(({ f }) => f === "lost").length).toBeGreaterThan(0);
    expect(events.filter(({ fault }) => fault === "stall").length).toBeGreaterThan(0);
  } finally {
    clearInterval(setting);
    await clock?.remove();
  }
}, 60_000);

it("does not blame a client for not ending while it stands still, but one that lives and does not", async () => {
  const dist = (path: string): string => JSON.stringify(new URL(`../../dist/${path}`, import.meta.url));
  const script = `
    import { connect } from ${dist("index.js")};
    import { Fleet, startResource } from ${dist("verify/live/fleet.js")};
    const { port, stop } = await startResource(${JSON.stringify(temporary)}, "fenced");
    const common = { ttlMs: 300, calmMs: 0, lanes: 1, seed: 1, ownStore: false, prefix: "verify/x/" };
    const fleet = new Fleet(${JSON.stringify(rig.store)}, ${JSON.stringify(temporary)}, {
      ...common, fencedPort: port, unfencedPort: port,
    });
    const stopped = await fleet.join(0);
    await stopped.started;
    stopped.pause();
    setTimeout(() => stopped.resume(), 4_000);
    console.log("late:", (await fleet.finish(1_500)).length);
    // Whatever it asks for, it waits.
    const locks = await connect(${JSON.stringify(rig.store)});
    await locks.acquire(["verify/x/a", "verify/x/b"]);
    await locks.semaphore("verify/x/a", 3).acquire({ weight: 3 });
    const waiting = await fleet.join(0);
    await waiting.started;
    console.log("late:", (await fleet.finish(1_500)).length);
    await fleet.end();
    await stop();
    await locks.close();`;
  const running = rig.spawn(process.execPath, ["--input-type=module", "-e", script], { TMPDIR: temporary });
  expect(await running.ended).toMatchObject({ code: 0, stdout: "late: 0\nlate: 1\n", stderr: "" });
}, 40_000);

it("heals, ends all processes and takes everything away at Ctrl-C", async () => {
  const words = ["verify", "--for", "5m", "--clients", "3", "--ttl", "20s", "--faults", "pause"];
  const running = rig.spawn(
    "script",
    ["-qefc", `stty rows 24 columns 100; exec ${rig.line(words)}`, "/dev/null"],
    {
      TERM: "xterm",
      SHELL: "/bin/sh",
      TMPDIR: temporary,
    },
  );
  // Somebody is stopped by now, for seconds to come.
  await running.until(/ 1 fault /);
  running.type("\u0003");
  const { code } = await running.ended;
  expect(code).toBe(130);
  await running.deserted;
  expect((await rig.run(["ls"])).stdout).toBe("nothing is locked\n");
  expect(readdirSync(temporary)).toEqual([]);
  expect(existsSync(join(rig.folder, "holdfast-verify"))).toBe(false);
}, 60_000);

it("ends in order if it is aborted before its clients are at work", async () => {
  const script = `
    import { verifyStore } from ${JSON.stringify(new URL("../../dist/verify/live/verify.js", import.meta.url))};
    const run = { url: ${JSON.stringify(rig.store)}, forMs: 5_000, clients: 3, faults: [], seed: 1, ttlMs: 500 };
    const alive = setInterval(() => {}, 1_000);
    await verifyStore({ ...run, signal: AbortSignal.abort(new Error("enough")) }).catch((error) => {
      console.log(error.message);
    });
    clearInterval(alive);`;
  const running = rig.spawn(process.execPath, ["--input-type=module", "-e", script], { TMPDIR: temporary });
  expect(await running.ended).toMatchObject({ code: 0, stdout: "enough\n", stderr: "" });
  expect(readdirSync(temporary)).toEqual([]);
}, 40_000);

it("keeps no process that ended it alive for the time that was left", async () => {
  const script = `
    import { verifyStore } from ${JSON.stringify(new URL("../../dist/verify/live/verify.js", import.meta.url))};
    const run = { url: ${JSON.stringify(rig.store)}, forMs: 300_000, clients: 2, faults: ["pause"], seed: 1, ttlMs: 300 };
    const enough = new AbortController();
    const onProgress = ({ phase }) => phase === "faults" && enough.abort(new Error("enough"));
    await verifyStore({ ...run, gapMs: [60_000, 60_000], signal: enough.signal, onProgress }).catch((error) => {
      console.log(error.message);
    });`;
  const running = rig.spawn(process.execPath, ["--input-type=module", "-e", script], { TMPDIR: temporary });
  expect(await running.ended).toMatchObject({ code: 0, stdout: "enough\n", stderr: "" });
  expect(readdirSync(temporary)).toEqual([]);
}, 40_000);

it("leaves nothing of a cluster of which one server does not start", async () => {
  const programs = join(rig.folder, "programs");
  mkdirSync(programs);
  const once = join(rig.folder, "once");
  const script = `#!/bin/sh\nmkdir ${once} 2>/dev/null && exit 1\nexec ${await locate("redis-server")} "$@"\n`;
  writeFileSync(join(programs, "redis-server"), script, { mode: 0o755 });
  const running = rig.start(["verify", "--cluster", "redlock"], {
    PATH: `${programs}:${process.env["PATH"]}`,
    TMPDIR: temporary,
  });
  const { code, stderr } = await running.ended;
  expect(stderr).toContain("redis did not start");
  expect(code).toBe(69);
  await running.deserted;
  expect(readdirSync(temporary)).toEqual([]);
}, 60_000);

/** An environment in which a program cannot do its work. */
function without(program: string): { PATH: string } {
  const programs = join(rig.folder, "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, program), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  return { PATH: `${programs}:${process.env["PATH"]}` };
}

it("says of Redis without a compiler why there is no clock-jump, and what to do", async () => {
  const words = ["verify", "--cluster", "redis", "--for", "1s", "--clients", "2", "--json"];
  const { code, stdout, stderr } = await rig.run([...words, "--faults", "clock-jump"], without("cc"));
  expect(stderr).toContain("clock-jump cannot be had here: ");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    faults: {},
    impossible: { "clock-jump": expect.stringContaining("install a C compiler") },
  });
}, 60_000);

it("cuts members of etcd off without network namespaces, too, and leaves nothing", async () => {
  const words = ["verify", "--cluster", "etcd", "--for", "8s", "--ttl", "1s", "--clients", "2", "--json"];
  const env = { ...without("ip"), TMPDIR: temporary };
  const { code, stdout, stderr } = await rig.run([...words, "--faults", "partition"], env);
  expect(stderr).not.toContain("cannot be had");
  expect(JSON.parse(stdout), stdout).toMatchObject({
    verdict: "valid",
    faults: { partition: expect.any(Number) },
    impossible: {},
  });
  expect(code).toBe(0);
  expect(readdirSync(temporary)).toEqual([]);
}, 60_000);

it("says that the faults of servers need servers of its own", async () => {
  const { code, stderr } = await rig.run(["verify", "--faults", "pause,server-kill"]);
  expect(code).toBe(64);
  expect(stderr).toContain('"server-kill" is a fault of servers');
  expect(stderr).toContain("--cluster");
});

it("refuses what makes no sense", async () => {
  writeFileSync(rig.file, "");
  for (const words of [
    ["--faults", "nap"],
    ["--cluster", "abacus"],
    ["--cluster", "redis", "--store", "redis://127.0.0.1"],
    ["--clients", "none"],
    ["--store", "memory:"],
    ["--out", "locks.db/seen"],
  ]) {
    const { code, stdout } = await rig.run(["verify", ...words]);
    expect({ words, code, stdout }).toEqual({ words, code: 64, stdout: "" });
  }
}, 40_000);
