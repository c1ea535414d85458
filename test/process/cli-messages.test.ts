/** Every message and exit code that docs/cli.md lists is produced by a real process; the list is read from the page. */
import { chmodSync, cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findDriver } from "../../src/backends/sqlite/driver.ts";
import { connect } from "../../src/connect.ts";
import { type CliEnded, CliRig } from "../helpers/cli.ts";
import { cliMessages, firstExample, type ListedMessage } from "../house/cli-page.ts";
import { root } from "../house/repository.ts";

let rig: CliRig;

beforeEach(() => {
  rig = new CliRig();
});

afterEach(() => rig.end());

type Scenario = () => Promise<CliEnded>;

const call =
  (...words: readonly string[]): Scenario =>
  () =>
    rig.run(words);

/** A holder whose store hangs until it has ended. */
async function lostToAHang(): Promise<CliEnded> {
  // Whoever stands still for the whole time between SIGTERM and SIGKILL sends only the latter: on a busy machine that must not be little.
  const holder = await rig.holder("x", ["--ttl", "2s"]);
  const hog = await rig.hog();
  const ended = await holder.ended;
  await hog.finish();
  return ended;
}

/** A watch during which the store hangs and goes on. */
async function watchAHang(): Promise<CliEnded> {
  const watch = rig.start(["watch", "--every", "50ms"]);
  const holder = await rig.holder("x");
  await watch.until(/granted/);
  const hog = await rig.hog();
  await watch.until(/does not answer/);
  await hog.finish();
  await watch.until(/answers again/);
  watch.signal("SIGINT");
  await holder.finish();
  return watch.ended;
}

/** A run of verify during which somebody empties the store again and again, which tells nobody. */
async function verifyWhileEmptied(): Promise<CliEnded> {
  const verify = rig.start(["verify", "--for", "4s", "--clients", "3", "--ttl", "600ms", "--faults", "none"]);
  const driver = findDriver();
  const emptying = setInterval(() => {
    try {
      const db = driver.open(rig.file);
      db.exec("DELETE FROM entries WHERE queue <> ''");
      db.close();
    } catch {
      // It is not there yet, or somebody writes: the next time, then.
    }
  }, 15);
  try {
    return await verify.finish();
  } finally {
    clearInterval(emptying);
  }
}

/** How each message comes about, by its id. */
const scenarios: Readonly<Record<string, Scenario>> = {
  "nobody-holds": call("release", "x", "--force", "--yes"),
  "token-unknown": call("release", "x", "--force", "--yes", "--token", "7"),
  "not-evicted": async () => {
    const holder = await rig.holder("x");
    const release = rig.onTerminal(["release", "x", "--force"]);
    await release.until(/\[y\/N\]/);
    release.type("n\n");
    const ended = await release.ended;
    await holder.finish();
    return ended;
  },
  "store-problem": call("doctor", "--store", "memory:"),
  "command-unknown": call("relase", "x"),
  "command-not-given": call(),
  "option-unknown": call("ls", "--jsn"),
  "option-without-value": call("run", "x", "--ttl", "--", "true"),
  "option-with-value": call("ls", "--json=yes"),
  "argument-missing": call("show"),
  "argument-unexpected": call("ls", "a", "b"),
  "options-exclude": call("run", "x", "--if-available", "--wait", "1s", "--", "true"),
  "value-refused": call("run", "x", "--ttl", "soon", "--", "true"),
  "grace-too-long": call("run", "x", "--kill-grace", "20s", "--", "true"),
  "force-missing": call("release", "x"),
  "yes-missing": call("release", "x", "--force"),
  "address-refused": call("ls", "--store", "redis://127.0.0.1?foo=bar"),
  "store-unsupported": call("ls", "--store", "memory:"),
  "semaphore-meant": async () => {
    const locks = await connect(rig.store);
    await locks.semaphore("x", 2).acquire();
    const ended = await rig.run(["release", "x", "--force", "--yes"]);
    await locks.close();
    return ended;
  },
  "store-unavailable": async () => {
    writeFileSync(join(rig.folder, "file"), "");
    return rig.run(["ls", "--store", `sqlite:${rig.folder}/file/locks.db`]);
  },
  bug: async () => {
    // An installation without its package.json.
    cpSync(join(root, "dist"), join(rig.folder, "dist"), { recursive: true });
    rig.script("package.json", '{ "type": "module" }');
    return rig.spawn(process.execPath, [join(rig.folder, "dist/cli/main.js"), "--version"]).finish();
  },
  busy: async () => {
    const holder = await rig.holder("x");
    const ended = await rig.run(["run", "x", "--wait", "50ms", "--", "true"]);
    await holder.finish();
    return ended;
  },
  "ended-in-time": lostToAHang,
  lost: async () => {
    const holder = await rig.holder("x");
    await rig.run(["release", "x", "--force", "--yes"]);
    return holder.ended;
  },
  "lost-late": async () => {
    const holder = await rig.holder("x", ["--ttl", "1h"]);
    // Somebody empties the store by hand, which tells nobody.
    const db = findDriver().open(rig.file);
    db.exec("DELETE FROM entries WHERE queue <> ''");
    db.close();
    return holder.finish();
  },
  "held-too-long": call("run", "x", "--max-hold", "300ms", "--", "sleep", "60"),
  "command-not-executable": async () => {
    chmodSync(rig.script("plain", "no program"), 0o644);
    return rig.run(["run", "x", "--", "./plain"]);
  },
  "command-not-found": call("run", "x", "--", "no-such-command"),
  "losing-soon": lostToAHang,
  "left-running": async () => {
    const running = rig.start(["run", "x", "--", "sh", "-c", "exec 3<&0; cat <&3 & exit 0"]);
    await running.until(/left/);
    return running.finish();
  },
  "release-unanswered": async () => {
    const holder = await rig.holder("x", ["--ttl", "2s"]);
    const hog = await rig.hog();
    const ended = await holder.finish();
    await hog.finish();
    return ended;
  },
  waiting: async () => {
    const holder = await rig.holder("x");
    const waiting = rig.onTerminal(["run", "x", "--", "true"]);
    await waiting.until(/waiting for/);
    await holder.finish();
    return waiting.ended;
  },
  "verify-invalid": verifyWhileEmptied,
  "verify-unknown": call("verify", "--for", "1s", "--clients", "2", "--faults", "pause"),
  "cluster-unavailable": () => rig.run(["verify", "--cluster", "redis"], { PATH: rig.folder }),
  "fault-impossible": call("verify", "--for", "1s", "--clients", "2", "--faults", "delay"),
  "store-silent": watchAHang,
  "store-back": watchAHang,
};

/** The message as it is in the page, with something in the place of each <>. */
function patternOf({ text, hint }: ListedMessage): RegExp {
  const parts = hint === "" ? [text] : [text, hint];
  const lines = parts.map((part) =>
    part
      .split(/<\w+>/)
      .map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^]+"),
  );
  return new RegExp(`holdfast: ${lines.join("\\r?\\n  ")}\\r?\\n`);
}

describe("a message of the page is produced, with its exit code", () => {
  it.each(cliMessages)(
    "$id",
    async (listed) => {
      const scenario = scenarios[listed.id];
      if (scenario === undefined) throw new Error(`nobody produces ${listed.id}: write a scenario`);
      const { code, stdout, stderr } = await scenario();
      // On a terminal both streams are one.
      expect(stdout + stderr).toMatch(patternOf(listed));
      if (listed.code !== null) expect(code).toBe(listed.code);
    },
    40_000,
  );

  it("and there is no scenario for anything else", () => {
    expect(Object.keys(scenarios).toSorted()).toEqual(cliMessages.map(({ id }) => id).toSorted());
  });
});

describe("with --json", () => {
  it("a message is an object on stderr", async () => {
    const { code, stdout, stderr } = await rig.run(["--json", "show"]);
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      message: "argument-missing",
      exitCode: 64,
      text: "give the name of a lock",
      hint: "usage: holdfast show <name> [options]",
    });
  });
});

describe("credentials", () => {
  it.each([[], ["--json"]])("are in no message %j", async (...json) => {
    const url = "nosuch://admin:hunter22@cache:6379/0?auth=s3cret99";
    const words = ["ls", ...json];
    const outputs = [
      await rig.run([...words, "--store", url]),
      await rig.run(words, { HOLDFAST_STORE: url }),
    ];
    for (const { code, stdout, stderr } of outputs) {
      expect(code).toBe(64);
      expect(stderr).toContain("nosuch://cache:6379/0");
      expect(stdout + stderr).not.toMatch(/hunter22|s3cret99|admin/);
    }
  });
});

it("the first example of the page runs", async () => {
  for (const name of ["report.sh", "npx"]) {
    chmodSync(rig.script(name, `#!/bin/sh\n${name === "npx" ? '"$@"' : "echo reported"}\n`), 0o755);
  }
  chmodSync(rig.script("holdfast", `#!/bin/sh\nexec ${rig.line([])} "$@"\n`), 0o755);
  const path = `${rig.folder}:${process.env["PATH"]}`;
  const { code, stdout, stderr } = await rig.spawn("bash", ["-ec", firstExample], { PATH: path }).finish();
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "reported\nnothing is locked\n", stderr: "" });
});
