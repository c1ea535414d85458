/** What people at a terminal see and type, on a real one: the live table, the question, Ctrl-C and Ctrl-Z. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CliRig } from "../helpers/cli.ts";

const escape = "\u001b";
const ctrlC = "\u0003";
const ctrlZ = "\u001a";

let rig: CliRig;

beforeEach(() => {
  rig = new CliRig();
});

afterEach(() => rig.end());

describe("watch", () => {
  it("draws the table again on a screen of its own, and gives the terminal back at Ctrl-C", async () => {
    const watch = rig.onTerminal(["watch", "--every", "100ms"]);
    await watch.until(new RegExp(`${escape}\\[\\?1049h[^]*nothing is locked`));
    const holder = await rig.holder("order:42");
    await watch.until(new RegExp(`${escape}\\[H[^]*${escape}\\[1mNAME +MODE[^]*order:42`));
    await holder.finish();
    await watch.until(new RegExp(`order:42[^]*${escape}\\[H[^]*nothing is locked`));
    watch.type(ctrlC);
    const { code, stdout } = await watch.ended;
    expect(code).toBe(0);
    expect(stdout.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  });

  it("fits a small terminal", async () => {
    const holders = await Promise.all(["a", "b", "c", "d"].map((name) => rig.holder(`a-long-name-${name}`)));
    const watch = rig.onTerminal(["watch", "--every", "100ms"], "rows 5 columns 40");
    await watch.until(/… and 3 more lines/);
    watch.type(ctrlC);
    const { stdout } = await watch.ended;
    for (const line of stripVTControlCharacters(stdout).split(/\r?\n/)) {
      expect(line.replace("^C", "").length, line).toBeLessThanOrEqual(40);
    }
    await Promise.all(holders.map((holder) => holder.finish()));
  });
});

describe("release", () => {
  it.each([
    ["y\n", 0],
    ["yes\n", 0],
    ["n\n", 1],
    ["\n", 1],
    [ctrlC, 1],
  ])("shows whom it is about and asks; %j ends with %d", async (answer, code) => {
    const holder = await rig.holder("x");
    const [, token = ""] = await holder.until(/held (\d+)/);
    const release = rig.onTerminal(["release", "x", "--force"]);
    await release.until(new RegExp(`holds +exclusive .*${token}[^]*Evict it\\? \\[y/N\\]`));
    release.type(answer);
    const ended = await release.ended;
    expect(ended.code).toBe(code);
    if (code === 0) {
      expect(ended.stdout).toContain(`with token ${token} from lock "x"`);
      expect(await holder.ended).toMatchObject({ code: 76 });
    } else {
      expect(ended.stdout).toContain("nothing was evicted");
      expect(await holder.finish()).toMatchObject({ code: 0 });
    }
  });
});

describe("run", () => {
  it("gives the terminal to the command, and Ctrl-C to its group", async () => {
    const script =
      'test -t 0 && test -t 1 && test -t 2 && echo "a terminal"; read line; echo "got $line"; exec cat';
    const running = rig.onTerminal(["run", "x", "--", "sh", "-c", script]);
    await running.until(/a terminal/);
    running.type("hello\n");
    await running.until(/got hello/);
    running.type(ctrlC);
    // script reports the end of its child as a shell does.
    expect(await running.ended).toMatchObject({ code: 130 });
    expect((await rig.run(["ls"])).stdout).toBe("nothing is locked\n");
  });

  it("lets a command that handles Ctrl-C end in its own way", async () => {
    const script = 'trap "echo bye; exit 5" INT; echo ready; while :; do sleep 0.02; done';
    const running = rig.onTerminal(["run", "x", "--", "bash", "-c", script]);
    await running.until(/ready/);
    running.type(ctrlC);
    expect(await running.ended).toMatchObject({ code: 5, stdout: expect.stringContaining("bye") });
  });

  it("ends the command when its terminal is closed", async () => {
    const running = rig.onTerminal(["run", "x", "--", "sh", "-c", "echo pid $$; exec cat"]);
    const [, pid] = await running.until(/pid (\d+)/);
    const watch = rig.start(["watch", "--every", "50ms"]);
    await watch.until(/granted/);
    running.signal("SIGKILL");
    await watch.until(/left/);
    expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH");
  });

  it("says for whom it waits", async () => {
    const holder = await rig.holder("x");
    const waiting = rig.onTerminal(["run", "x", "--", "true"]);
    await waiting.until(new RegExp(`waiting for "x": \\S+:${holder.pid} sh has held it for \\d`));
    await holder.finish();
    expect(await waiting.ended).toMatchObject({ code: 0 });
  });

  it("stops with its command at Ctrl-Z and goes on with it", async () => {
    const shell = rig.onShell();
    await shell.until(/\$ $/);
    shell.type(`${rig.line(["run", "x", "--ttl", "1h", "--", "cat"])}\n`);
    await rig.watchFor(/granted {2}x/);
    shell.type("one\n");
    await shell.until(/one\r\none\r\n/);
    shell.type(ctrlZ);
    await shell.until(/Stopped[^]*\$ $/);
    shell.type("fg\n");
    // Bash shows the job that it continues.
    await shell.until(/Stopped[^]*\$ [^]*fg[^]*main\.js/);
    shell.type("two\n");
    await shell.until(/two\r\ntwo\r\n/);
    shell.type(ctrlC);
    await shell.until(/two\r\ntwo\r\n\^C[^]*\$ $/);
    shell.type("echo code $?\n");
    await shell.until(/code 130/);
    shell.type("exit\n");
    await shell.ended;
  });

  it("never lets a command go on that was stopped for longer than the ttl", async () => {
    const beat = rig.script(
      "beat.mjs",
      `import { writeFileSync } from "node:fs";
const beat = () => writeFileSync("beat", String(Date.now()));
beat();
console.log("beating");
setInterval(beat, 1);`,
    );
    const shell = rig.onShell();
    await shell.until(/\$ $/);
    shell.type(`${rig.line(["run", "x", "--ttl", "500ms", "--", process.execPath, beat])}\n`);
    await shell.until(/beating/);
    shell.type(ctrlZ);
    await shell.until(/Stopped[^]*\$ $/);
    const other = await rig.holder("x");
    const otherSince = Date.now();
    shell.type("fg\n");
    await shell.until(/was lost, and the command was ended \(SIGKILL\)[^]*\$ $/);
    shell.type("echo code $?\n");
    await shell.until(/code 76/);
    expect(Number(readFileSync(join(rig.folder, "beat"), "utf8"))).toBeLessThan(otherSince);
    await other.finish();
    shell.type("exit\n");
    await shell.ended;
  });
});
