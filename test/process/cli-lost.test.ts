/** A lock that cannot be renewed, or is gone, costs the command its life before anybody else can be granted the lock. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openBackend } from "../../src/connect.ts";
import type { Backend } from "../../src/core/backend.ts";
import { CliRig, type Running } from "../helpers/cli.ts";

let rig: CliRig;
/** Open from the beginning: a file on which somebody else writes cannot be opened. */
let observer: Backend;

beforeEach(async () => {
  rig = new CliRig();
  observer = await openBackend(rig.store);
});

afterEach(async () => {
  await observer.close();
  await rig.end();
});

/** A command of two processes that write the time into files as long as they live, and do not end at SIGTERM. */
function stubborn(): readonly string[] {
  const beat = rig.script(
    "beat.mjs",
    `import { writeFileSync } from "node:fs";
process.on("SIGTERM", () => console.log("told to end"));
const beat = () => writeFileSync(process.argv[2], String(Date.now()));
beat();
console.log("beating");
setInterval(beat, 5);`,
  );
  const script = `trap "" TERM; ${process.execPath} ${beat} beat-1 & ${process.execPath} ${beat} beat-2; wait`;
  return ["--", "sh", "-c", script];
}

async function bothBeat(running: Running): Promise<void> {
  await running.until(/beating[^]*beating/);
}

/** When the last of the two was alive, by the wall clock. */
function lastBeat(): number {
  const files = ["beat-1", "beat-2"].map((name) => join(rig.folder, name));
  return Math.max(...files.map((file) => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0)));
}

/** The earliest moment at which the store could give the lock to somebody else if it is not renewed any more. */
async function freeAt(name: string): Promise<number> {
  const now = Date.now();
  const [entry] = await observer.list(name);
  if (entry === undefined) throw new Error("nobody holds");
  return now + entry.expiresInMs;
}

describe("a store that hangs", () => {
  it("ends the whole group before anybody else can be granted, though it ignores SIGTERM", async () => {
    const running = rig.start(["run", "x", "--ttl", "4s", ...stubborn()]);
    await bothBeat(running);
    const hog = await rig.hog();
    const free = await freeAt("x");
    const waiting = rig.start(["run", "x", "--", "sh", "-c", "date +%s%3N"]);
    await running.until(/about to be lost: no renewal has been answered/);
    const { code, stdout, stderr } = await running.ended;
    expect(lastBeat()).toBeLessThan(free);
    expect(code).toBe(76);
    expect(stdout.match(/told to end/g)).toHaveLength(2);
    expect(stderr).toContain('lock "x" could not be renewed, and the command was ended (SIGKILL)');
    await hog.finish();
    const next = await waiting.ended;
    expect(next).toMatchObject({ code: 0 });
    expect(Number(next.stdout)).toBeGreaterThan(lastBeat());
  });

  it("ends the command in time also if nobody reads what holdfast has to say about it", async () => {
    const beat = "date +%s%3N > beat; mv beat beat-1; sleep 0.02";
    const script = `trap "" TERM; echo beating; while :; do ${beat}; done`;
    const line = rig.line(["run", "x", "--ttl", "4s", "--", "sh", "-c", script]);
    const full = "mkfifo full; exec 3<>full; timeout 0.5 cat /dev/zero >&3";
    const running = rig.spawn("bash", ["-c", `${full}; exec ${line} 2>&3`]);
    await running.until(/beating/);
    const hog = await rig.hog();
    const free = await freeAt("x");
    // After this somebody reads, so that it can end.
    await new Promise((resolve) => setTimeout(resolve, free - Date.now()));
    const aliveAt = lastBeat();
    const said = rig.spawn("cat", ["full"]);
    expect(await running.ended).toMatchObject({ code: 76 });
    expect(aliveAt).toBeLessThan(free - 100);
    await said.until(/was ended \(SIGKILL\)/);
    await hog.finish();
  });

  it("lets a command that ends at SIGTERM clean up first", async () => {
    const script = 'trap "date +cleaned:%s%3N; exit 0" TERM; echo ready; while :; do sleep 0.02; done';
    const options = ["--ttl", "4s", "--kill-grace", "2s"];
    const running = rig.start(["run", "x", ...options, "--", "bash", "-c", script]);
    await running.until(/ready/);
    const hog = await rig.hog();
    const free = await freeAt("x");
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(76);
    const cleanedAt = Number(/cleaned:(\d+)/.exec(stdout)?.[1]);
    // It has the grace that was asked for.
    expect(cleanedAt).toBeLessThan(free - 1_900);
    expect(stderr).toContain("was ended (SIGTERM) before anybody else could hold it");
    await hog.finish();
  });
});

describe("a store that is paused", () => {
  it("ends the command in time, and the next holder comes when the store goes on", async () => {
    const running = rig.start(["run", "x", "--ttl", "4s", ...stubborn()]);
    await bothBeat(running);
    const hog = await rig.hog();
    hog.signal("SIGSTOP");
    const free = await freeAt("x");
    expect(await running.ended).toMatchObject({ code: 76 });
    expect(lastBeat()).toBeLessThan(free);
    hog.signal("SIGCONT");
    await hog.finish();
    expect(await rig.run(["run", "x", "--wait", "10s", "--", "true"])).toMatchObject({ code: 0 });
  });

  it("for a moment only does no harm", async () => {
    const running = await rig.holder("x", ["--ttl", "3s"]);
    const hog = await rig.hog();
    hog.signal("SIGSTOP");
    const before = await freeAt("x");
    hog.signal("SIGCONT");
    await hog.finish();
    const watch = rig.start(["watch", "--json", "--every", "50ms"]);
    await watch.until(/granted/);
    // A renewal has come through when the lock lives longer than it could have without.
    for (let free = before; free <= before; free = await freeAt("x")) await new Promise(setImmediate);
    expect(await running.finish()).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("a holdfast that was stopped for longer than its ttl", () => {
  it("kills the group at once when it goes on", async () => {
    const running = rig.start(["run", "x", "--ttl", "500ms", ...stubborn()]);
    await bothBeat(running);
    running.signal("SIGSTOP");
    // Somebody else is granted: the ttl is over.
    const other = await rig.holder("x");
    const continuedAt = Date.now();
    running.signal("SIGCONT");
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(76);
    expect(stdout).not.toContain("told to end");
    expect(stderr).toContain('lock "x" was lost, and the command was ended (SIGKILL): lock "x" on sqlite');
    expect(lastBeat() - continuedAt).toBeLessThan(250);
    await other.finish();
  });
});

describe("a lock that was evicted", () => {
  it("costs the command its life at once", async () => {
    const running = rig.start(["run", "x", "--ttl", "1h", ...stubborn()]);
    await bothBeat(running);
    expect(await rig.run(["release", "x", "--force", "--yes"])).toMatchObject({ code: 0 });
    const { code, stderr } = await running.ended;
    expect(code).toBe(76);
    expect(stderr).toContain("somebody else took it away");
  });
});

describe("--max-hold", () => {
  it("without a grace ends the command with SIGKILL alone", async () => {
    const options = ["--max-hold", "800ms", "--kill-grace", "0s"];
    const { code, stdout, stderr } = await rig.start(["run", "x", ...options, ...stubborn()]).ended;
    expect(code).toBe(76);
    expect(stdout).not.toContain("told to end");
    expect(stderr).toMatch(/^holdfast: lock "x" was held for its --max-hold of 800ms, .* \(SIGKILL\)\n/);
  });

  it("ends the command in time, with SIGTERM first", async () => {
    const running = rig.start(["run", "x", "--max-hold", "8s", ...stubborn()]);
    await bothBeat(running);
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(76);
    expect(stdout).toContain("told to end");
    expect(stderr).toContain(
      'lock "x" was held for its --max-hold of 8s, and the command was ended (SIGKILL)',
    );
    expect(await rig.run(["run", "x", "--if-available", "--", "true"])).toMatchObject({ code: 0 });
  });
});
