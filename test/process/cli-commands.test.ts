/** The commands that look and help, in real processes on a real file. */
import { chmodSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/connect.ts";
import { read } from "../house/repository.ts";
import { CliRig } from "../helpers/cli.ts";

let rig: CliRig;

beforeEach(() => {
  rig = new CliRig();
});

afterEach(() => rig.end());

function objects(text: string): readonly unknown[] {
  return text
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

describe("ls and show", () => {
  it("show holders with host, pid, label, token and metadata, and how many wait", async () => {
    const holder = await rig.holder("order:42", ["--metadata", "invoice 17"]);
    const [, token = ""] = await holder.until(/held (\d+)/);
    const waiting = rig.start(["run", "order:42", "--", "true"]);
    const watch = rig.start(["watch", "--every", "50ms"]);
    await watch.until(/waits/);

    const table = (await rig.run(["ls", "order:"])).stdout;
    expect(table).toMatch(/^NAME +MODE +HOLDER +TOKEN +SINCE +EXPIRES +WAITING +METADATA\n/);
    expect(table).toMatch(
      new RegExp(`order:42 +exclusive +\\S+:${holder.pid} sh +${token} .* 1  invoice 17`),
    );
    expect((await rig.run(["ls", "other"])).stdout).toBe("nothing is locked\n");

    const shown = (await rig.run(["show", "order:42"])).stdout;
    expect(shown).toMatch(/^lock order:42\n +STATE .*\n +holds .* invoice 17\n +waits .*true/);

    for (const command of [["ls"], ["show", "order:42"]]) {
      expect(objects((await rig.run([...command, "--json"])).stdout)).toEqual([
        expect.objectContaining({ name: "order:42", state: "held", token, metadata: "invoice 17" }),
        expect.objectContaining({
          name: "order:42",
          state: "waiting",
          owner: expect.objectContaining({ label: "true" }),
        }),
      ]);
    }
    await holder.finish();
    await waiting.ended;
  });

  it("show semaphores by their permits", async () => {
    const locks = await connect(rig.store);
    await locks.semaphore("api", 10).acquire({ weight: 2 });
    expect((await rig.run(["ls"])).stdout).toMatch(/api +2 of 10 /);
    expect((await rig.run(["show", "api"])).stdout).toContain("semaphore api");
    await locks.close();
  });

  it("say that a name is free", async () => {
    expect(await rig.run(["show", "x"])).toMatchObject({ code: 0, stdout: "x is free\n", stderr: "" });
    expect(await rig.run(["show", "x", "--json"])).toMatchObject({ code: 0, stdout: "" });
  });

  it("end quietly when nobody reads any more", async () => {
    const holders = await Promise.all(["a", "b"].map((name) => rig.holder(name)));
    const script = `"$0" dist ls | true; echo "\${PIPESTATUS[0]}"`;
    const main = new URL("../../dist/cli/main.js", import.meta.url).pathname;
    const bash = rig.spawn("bash", ["-c", script.replace("dist", `'${main}'`), process.execPath]);
    expect(await bash.finish()).toMatchObject({ stdout: "141\n", stderr: "" });
    await Promise.all(holders.map((holder) => holder.finish()));
  });
});

describe("watch", () => {
  it.each(["SIGINT", "SIGTERM"] as const)("writes a line per change, and ends well at %s", async (signal) => {
    const watch = rig.start(["watch", "order:", "--every", "50ms"]);
    const holder = await rig.holder("order:42");
    const [, token = ""] = await holder.until(/held (\d+)/);
    await watch.until(new RegExp(`granted  order:42  exclusive  \\S+:${holder.pid} sh  token ${token}`));
    await holder.finish();
    await watch.until(new RegExp(`left     order:42 .* token ${token}`));
    watch.signal(signal);
    const { code, stdout, stderr } = await watch.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).not.toContain("\u001b");
  });

  it("takes an interval that is longer than timers are", async () => {
    const holder = await rig.holder("x");
    const watch = rig.start(["watch", "--every", "60d"]);
    await watch.until(/granted/);
    await holder.finish();
    await new Promise((resolve) => setTimeout(resolve, 200));
    watch.signal("SIGTERM");
    expect(await watch.ended).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.not.stringContaining("left"),
    });
  });

  it("writes an object per change with --json", async () => {
    const holder = await rig.holder("x");
    const watch = rig.start(["watch", "--json", "--every", "50ms"]);
    await watch.until(/granted/);
    watch.signal("SIGINT");
    const { stdout } = await watch.ended;
    const change = { change: "granted", name: "x", at: expect.any(String), token: expect.any(String) };
    expect(objects(stdout)).toEqual([expect.objectContaining(change)]);
    await holder.finish();
  });
});

describe("release", () => {
  it("evicts the holder, says whom, and lets the next one in", async () => {
    const holder = await rig.holder("x", ["--ttl", "1h"]);
    const [, token = ""] = await holder.until(/held (\d+)/);
    const waiting = rig.start(["run", "x", "--", "echo", "mine"]);
    const { code, stdout } = await rig.run(["release", "x", "--force", "--yes"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^evicted \\S+:${holder.pid} sh with token ${token} from lock "x"\n$`));
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: "mine\n" });
    expect(await holder.ended).toMatchObject({ code: 76 });
  });

  it("evicts one of several by its token, and says it to machines", async () => {
    const one = await rig.holder("x", ["--shared"]);
    const two = await rig.holder("x", ["--shared"]);
    const [, token = ""] = await two.until(/held (\d+)/);
    const { stdout } = await rig.run(["release", "x", "--force", "--yes", "--token", token, "--json"]);
    expect(objects(stdout)).toEqual([expect.objectContaining({ evicted: true, token, name: "x" })]);
    expect(await two.ended).toMatchObject({ code: 76 });
    expect(await one.finish()).toMatchObject({ code: 0 });
  });

  it("evicts from a semaphore only where that is said", async () => {
    const locks = await connect(rig.store);
    const permit = await locks.semaphore("api", 2).acquire();
    expect(await rig.run(["release", "api", "--force", "--yes"])).toMatchObject({ code: 64 });
    const { stdout } = await rig.run(["release", "api", "--force", "--yes", "--semaphore"]);
    expect(stdout).toContain(`with token ${permit.token} from semaphore "api"`);
    await locks.close();
  });
});

describe("doctor", () => {
  it("looks at the store, with what to do for each finding that needs it", async () => {
    const { code, stdout } = await rig.run(["doctor"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok +answers: 0 names in use/);
    const findings = objects((await rig.run(["doctor", "--json"])).stdout);
    expect(findings[0]).toMatchObject({ level: "ok", about: "answers" });
    for (const finding of findings) {
      if (finding !== null && typeof finding === "object" && "level" in finding && finding.level !== "ok") {
        expect(finding).toHaveProperty("todo");
      }
    }
  });

  it("finds what the store itself can see: a file that others may use", async () => {
    await rig.run(["ls"]);
    chmodSync(rig.file, 0o644);
    const { code, stdout } = await rig.run(["doctor"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^warning +file: .*locks\.db.*\n +to do: chmod 600/m);
  });

  it("finds that memory excludes nobody, and that it cannot be examined", async () => {
    const { code, stdout } = await rig.run(["doctor", "--store", "memory:"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/problem +reach: .*\n +to do: use sqlite or a server/);
    expect(stdout).toContain("cannot be examined");
  });
});

describe("help and version", () => {
  it("are on stdout, and end well", async () => {
    const version = /"version": "(.+)"/.exec(read("package.json"))?.[1];
    expect(await rig.run(["--version"])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
    expect(await rig.run(["-V", "--json"])).toMatchObject({ stdout: `{"version":"${version}"}\n` });
    const { stdout } = await rig.run(["--help"]);
    expect(await rig.run(["help"])).toMatchObject({ code: 0, stdout, stderr: "" });
    const ofRun = await rig.run(["run", "--help"]);
    expect(await rig.run(["help", "run"])).toMatchObject({ code: 0, stdout: ofRun.stdout });
    expect(ofRun.stdout).toContain("--kill-grace");
  });

  it("completion is a script that bash takes", async () => {
    const { stdout } = await rig.run(["completion", "bash"]);
    const bash = rig.spawn("bash", ["-n", rig.script("completion", stdout)]);
    expect(await bash.finish()).toMatchObject({ code: 0, stderr: "" });
  });
});
