/** Completion scripts and help are made from the tables of the commands; each shell is asked what it makes of its own. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

/** What is typed, and what stands there after a tab. */
const tabs = [
  ["re", "release"],
  ["run x --w", "run x --wait"],
  ["run --ttl 5s x --met", "run --ttl 5s x --metadata"],
  ["--store ls release --fo", "--store ls release --force"],
  ["run --ttl re", "run --ttl re"],
  ["completion f", "completion fish"],
  ["help doc", "help doctor"],
  ["run x -- printen", "run x -- printenv"],
  ["run x --ttl 5s -- printen", "run x --ttl 5s -- printenv"],
] as const;

// Somebody at a terminal: a zsh in a pseudo-terminal, its tab key, and a key that shows what stands in the line.
const zshAtTerminal = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $1/setup"
zpty -r -m shell seen '*ready>*'
for typed in "\${@[2,-1]}"; do
  zpty -w -n shell "holdfast $typed"$'\t\x18'
  zpty -r -m shell seen '*<*>*'
  print -r -- "\${\${seen##*<}%%>*}"
  zpty -w -n shell $'\x15'
done`;
const zshSetup = `
fpath=(\${0:h} $fpath)
autoload -Uz compinit
compinit -u -D
show() { print -r -- "<$BUFFER>" }
zle -N show
bindkey '^X' show
PS1='ready>'`;

const inFolder = <Result>(work: (folder: string) => Result): Result => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-shell-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

it("zsh completes at a terminal", () => {
  const lines = inFolder((folder) => {
    writeFileSync(join(folder, "_holdfast"), completions["zsh"]?.(commands) ?? "");
    writeFileSync(join(folder, "setup"), zshSetup);
    const args = ["-f", "-c", zshAtTerminal, "zsh", folder, ...tabs.map(([typed]) => typed)];
    return execFileSync("zsh", args, { encoding: "utf8" }).trim().split("\n");
  });
  expect(lines.map((line) => line.trim())).toEqual(tabs.map(([, completed]) => `holdfast ${completed}`));
});

it("fish completes", () => {
  const offers = inFolder((folder) => {
    writeFileSync(join(folder, "holdfast.fish"), completions["fish"]?.(commands) ?? "");
    const script = `source ${folder}/holdfast.fish; for typed in $argv; echo (complete -C"holdfast $typed"); end`;
    const args = ["--no-config", "-c", script, ...tabs.map(([typed]) => typed)];
    // It wants to write down its variables at home.
    const env = { ...process.env, HOME: folder };
    return execFileSync("fish", args, { encoding: "utf8", env }).split("\n");
  });
  for (const [index, [typed, completed]] of tabs.entries()) {
    const last = completed.split(" ").at(-1) ?? "";
    expect(offers[index]?.split("\t")[0], typed).toBe(typed === completed ? "" : last);
  }
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
