/** Completion scripts and help are made from the tables of the commands; the one for bash is asked as bash asks it. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { optionsOf } from "../../src/cli/command.ts";
import { commands } from "../../src/cli/commands/index.ts";
import { completions } from "../../src/cli/completion.ts";
import { commandHelp, overview } from "../../src/cli/help.ts";

/** What bash offers after these words, the last of which is being typed. */
function offered(...typed: readonly string[]): readonly string[] {
  const script = `${completions["bash"]?.(commands)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ["--norc", "-c", script, "bash", "holdfast", ...typed];
  return execFileSync("bash", args, { encoding: "utf8" }).trim().split("\n");
}

describe("bash", () => {
  it("offers the commands first", () => {
    expect(offered("")).toEqual([...commands.map(({ name }) => name), "--help", "--version"]);
    expect(offered("re")).toEqual(["release"]);
  });

  it("offers the options of the command, after options with values, too", () => {
    expect(offered("run", "x", "--w")).toEqual(["--wait"]);
    expect(offered("--store", "ls", "release", "--fo")).toEqual(["--force"]);
  });

  it("offers nothing for a value, and what there is for an argument", () => {
    expect(offered("run", "--ttl", "")).toEqual([""]);
    expect(offered("completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
    expect(offered("help", "doc")).toEqual(["doctor"]);
  });

  it("offers commands after --", () => {
    expect(offered("run", "x", "--", "prin")).toContain("printf");
  });
});

describe.each(["zsh", "fish"])("%s", (shell) => {
  const script = completions[shell]?.(commands) ?? "";

  it("knows all commands and options", () => {
    for (const command of commands) {
      expect(script).toContain(command.name);
      for (const option of Object.keys(optionsOf(command))) {
        expect(script).toContain(shell === "fish" ? `-l ${option}` : `--${option}[`);
      }
    }
  });

  it("has quotes that end", () => {
    for (const line of script.split("\n").filter((text) => !text.startsWith("#"))) {
      expect(line.replaceAll("'\\''", "").split("'").length % 2, line).toBe(1);
    }
  });
});

describe("help", () => {
  it.each(commands)("of $name has its usage, its options and examples", (command) => {
    const text = commandHelp(command);
    expect(text).toContain(`holdfast ${command.name}`);
    for (const name of Object.keys(optionsOf(command))) expect(text).toContain(`--${name}`);
    expect(command.examples.length).toBeGreaterThan(0);
    for (const [line] of command.examples) expect(text).toContain(line);
    for (const line of text.split("\n")) expect(line.length, line).toBeLessThanOrEqual(110);
  });

  it("lists all commands", () => {
    for (const { name, summary } of commands)
      expect(overview(commands)).toMatch(`${name.padEnd(10)}  ${summary}`);
  });
});
