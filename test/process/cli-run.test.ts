/** `holdfast run` in real processes: what the command gets, how it ends, and that there is one at a time. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CliRig } from "../helpers/cli.ts";

let rig: CliRig;

beforeEach(() => {
  rig = new CliRig();
});

afterEach(() => rig.end());

const sh = (script: string): readonly string[] => ["--", "sh", "-c", script];

describe("the command", () => {
  it("gets name and token, the environment, and the streams untouched", async () => {
    const script = 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN $EXTRA"; cat; echo oops >&2';
    const running = rig.start(["run", "order:42", ...sh(script)], { EXTRA: "more" });
    running.type("a line\u0000with anything\n");
    const { code, stdout, stderr } = await running.finish();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^order:42 \d{10,} more\na line\0with anything\n$/);
    expect(stderr).toBe("oops\n");
  });

  it("shares pipes with others, who can go on writing to them while holdfast waits", async () => {
    const holder = await rig.holder("x");
    const [waiting, full] = [rig.line(["run", "x", "--", "true"]), join(rig.folder, "full")];
    const writer = `${waiting} & read -r go; head -c 300000 /dev/zero && echo wrote >&2; wait`;
    const reader = `until [ -e ${full} ]; do sleep 0.05; done; wc -c`;
    const pipe = rig.spawn("bash", ["-c", `{ ${writer}; } | { ${reader}; }`]);
    await rig.watchFor(/waits/);
    pipe.type("go\n");
    // A pipe has room for 64 KiB: by now whoever does not wait has failed.
    await new Promise((resolve) => setTimeout(resolve, 300));
    writeFileSync(full, "");
    await holder.finish();
    expect(await pipe.ended).toMatchObject({ code: 0, stdout: "300000\n", stderr: "wrote\n" });
  });

  it("gets its arguments byte by byte, or is not run", async () => {
    const [line, bytes] = [rig.line(["run", "x", "--", "printf", "%s"]), "$'caf\\xe9'"];
    const refused = await rig.spawn("bash", ["-c", `${line} ${bytes}`]).finish();
    expect(refused).toMatchObject({ code: 64, stdout: "" });
    expect(refused.stderr).toContain("an argument is not UTF-8");
    expect(await rig.run(["run", "x", "--", "printf", "%s", "café \ufffd"])).toMatchObject({
      code: 0,
      stdout: "café \ufffd",
    });
  });

  it("without a name is not found", async () => {
    expect(await rig.run(["run", "x", "--", ""])).toMatchObject({
      code: 127,
      stderr: 'holdfast: "": command not found\n',
    });
  });

  it("does not get the address of --store", async () => {
    const { stdout } = await rig.run(["run", "x", "--store", rig.store, "--", "env"], { HOLDFAST_STORE: "" });
    expect(stdout).not.toContain("locks.db");
    expect(stdout).toContain("HOLDFAST_TOKEN=");
  });

  it.each([0, 1, 7, 255])("that exits with %d makes holdfast exit with it", async (code) => {
    expect(await rig.run(["run", "x", ...sh(`exit ${code}`)])).toMatchObject({ code, stderr: "" });
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"])("that %s ends makes holdfast end by it", async (signal) => {
    const ended = await rig.run(["run", "x", ...sh(`kill -${signal.slice(3)} $$`)]);
    expect(ended).toMatchObject({ code: null, signal });
  });

  it.each([
    ["SIGQUIT", 131],
    ["SIGKILL", 137],
    ["SIGSEGV", 139],
    ["SIGUSR1", 138],
  ])("that %s ends makes holdfast exit with %d", async (signal, code) => {
    const ended = await rig.run(["run", "x", ...sh(`ulimit -c 0; kill -${signal.slice(3)} $$`)]);
    expect(ended).toMatchObject({ code, signal: null });
  });

  it("gives larger tokens each time, and leaves nothing behind", async () => {
    const tokens: bigint[] = [];
    for (let round = 0; round < 3; round++) {
      const { stdout } = await rig.run(["run", "x", ...sh("echo $HOLDFAST_TOKEN")]);
      tokens.push(BigInt(stdout));
    }
    expect(tokens).toEqual([...new Set(tokens)].toSorted((one, other) => (one < other ? -1 : 1)));
    expect((await rig.run(["ls"])).stdout).toBe("nothing is locked\n");
  });

  it("shows what happens to machines with --json, on stderr", async () => {
    const { stdout, stderr } = await rig.run(["run", "x", "--json", ...sh("echo mine; exit 3")]);
    expect(stdout).toBe("mine\n");
    const events = stderr
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(events).toEqual([
      { event: "granted", name: "x", token: expect.stringMatching(/^\d+$/) },
      { event: "ended", name: "x", token: expect.any(String), ended: { code: 3 }, released: "released" },
    ]);
  });
});

describe("one at a time", () => {
  it("a counter that is read, kept and written is exact", async () => {
    const counter = join(rig.folder, "counter");
    writeFileSync(counter, "0\n");
    const script = `n=$(cat ${counter}); sleep 0.03; echo $((n + 1)) > ${counter}`;
    const ended = await Promise.all(
      Array.from({ length: 8 }, () => rig.run(["run", "counter", ...sh(script)])),
    );
    expect(ended.map(({ code }) => code)).toEqual(Array(8).fill(0));
    expect(readFileSync(counter, "utf8")).toBe("8\n");
  });

  it("shared holders meet, and an exclusive one waits for both", async () => {
    const one = await rig.holder("x", ["--shared"]);
    const two = await rig.holder("x", ["--shared"]);
    const busy = await rig.run(["run", "x", "--if-available", "--", "true"]);
    expect(busy).toMatchObject({ code: 75 });
    const waiting = rig.start(["run", "x", ...sh("echo alone")]);
    await Promise.all([one.finish(), two.finish()]);
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: "alone\n" });
  });
});

describe("signals", () => {
  const all = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;

  it.each(all)("%s reaches the whole group", async (signal) => {
    const script = rig.script(
      "family.mjs",
      `import { spawn } from "node:child_process";
const [, file, signal, role = "outer"] = process.argv;
const inner = role === "outer" ? spawn(process.execPath, [file, signal, "inner"], { stdio: "inherit" }) : null;
const end = () => { console.log(role); process.exit(40); };
process.on(signal, () => (inner === null || inner.exitCode !== null ? end() : inner.on("exit", end)));
if (role === "inner") console.log("ready");
setInterval(() => {}, 1000);`,
    );
    const running = rig.start(["run", "x", "--", process.execPath, script, signal]);
    await running.until(/ready/);
    running.signal(signal);
    const ended = { code: 40, signal: null, stdout: "ready\ninner\nouter\n", stderr: "" };
    expect(await running.ended).toEqual(ended);
  });

  it("that end a wait end holdfast by the same signal, and leave no entry", async () => {
    const holder = await rig.holder("x");
    const waiting = rig.start(["run", "x", "--", "true"]);
    const watch = rig.start(["watch", "--every", "50ms"]);
    await watch.until(/waits/);
    waiting.signal("SIGTERM");
    expect(await waiting.ended).toMatchObject({ code: null, signal: "SIGTERM", stderr: "" });
    const { stdout } = await rig.run(["show", "x", "--json"]);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    await holder.finish();
  });
});

describe("what a command leaves in its group", () => {
  it("keeps the lock until it ends", async () => {
    const running = rig.start(["run", "x", ...sh("exec 3<&0; cat <&3 & echo left $!; exit 3")]);
    const [, pid] = await running.until(/left (\d+)/);
    await running.until(new RegExp(`left 1 process running in its process group \\(${pid}\\)`));
    expect(await rig.run(["run", "x", "--if-available", "--", "true"])).toMatchObject({ code: 75 });
    expect(await running.finish()).toMatchObject({ code: 3 });
    expect(await rig.run(["run", "x", "--if-available", "--", "true"])).toMatchObject({ code: 0 });
  });
});

describe("a holdfast that crashes", () => {
  it("takes its command with it", async () => {
    const crash = rig.script("crash.cjs", 'process.on("SIGALRM", () => { throw new Error("crashed"); });');
    const env = { NODE_OPTIONS: `--require=${crash}` };
    const running = rig.start(["run", "x", ...sh("echo running; exec sleep 60")], env);
    await running.until(/running/);
    running.signal("SIGALRM");
    expect(await running.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("crashed") });
    await running.deserted;
  });
});

describe("a holdfast that is killed", () => {
  it("frees the lock at once on SQLite, and its command lives on, as the page says", async () => {
    const running = rig.start(["run", "x", "--ttl", "1h", ...sh("echo pid $$; exec sleep 60")]);
    const [, pid] = await running.until(/pid (\d+)/);
    const waiting = rig.start(["run", "x", ...sh("echo mine")]);
    running.signal("SIGKILL");
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: "mine\n" });
    expect(() => process.kill(Number(pid), 0)).not.toThrow();
    process.kill(Number(pid), "SIGKILL");
  });
});
