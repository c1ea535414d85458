/** Command lines are taken apart by the tables of the commands, and refused with a hint where they do not fit. */
import { describe, expect, it } from "vitest";
import { parseCommandLine, splitGlobal } from "../../src/cli/arguments.ts";
import type { Command } from "../../src/cli/command.ts";
import { commands } from "../../src/cli/commands/index.ts";
import { Failure } from "../../src/cli/messages.ts";
import { nearest } from "../../src/cli/suggest.ts";

function command(name: string): Command {
  const found = commands.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no command ${name}`);
  return found;
}

function failure(name: string, words: readonly string[]): string {
  try {
    parseCommandLine(command(name), words);
  } catch (error) {
    if (error instanceof Failure) return `${error.shown.id}: ${error.shown.text}; ${error.shown.hint}`;
    throw error;
  }
  return "no failure";
}

describe("run", () => {
  it("takes options before and after the name, and leaves the command alone", () => {
    const words = ["--ttl", "5s", "job", "--wait=1s", "--shared", "-q", "--", "cmd", "--wait", "--", "-x"];
    const { positionals, rest, given } = parseCommandLine(command("run"), words);
    expect(positionals).toEqual(["job"]);
    expect(rest).toEqual(["cmd", "--wait", "--", "-x"]);
    expect(["ttl", "wait", "metadata"].map((name) => given.value(name))).toEqual(["5s", "1s", undefined]);
    expect(["shared", "quiet", "json"].map((name) => given.flag(name))).toEqual([true, true, false]);
  });

  it("takes a value that starts with a dash after =", () => {
    const { given } = parseCommandLine(command("run"), ["x", "--metadata=-v", "--", "true"]);
    expect(given.value("metadata")).toBe("-v");
  });

  it.each([
    [["x"], "argument-missing: give a command after --"],
    [["--", "true"], "argument-missing: give the name of the lock"],
    [["x", "true"], 'argument-unexpected: unexpected argument "true"'],
    [["x", "--ttl", "--", "true"], "option-without-value: --ttl needs a value"],
    [["x", "--ttl", "--shared", "--", "true"], "option-without-value: --ttl needs a value"],
    [["x", "--shared=yes", "--", "true"], "option-with-value: --shared takes no value"],
    [
      ["x", "--waitt", "1s", "--", "true"],
      "option-unknown: there is no option --waitt here; did you mean --wait?",
    ],
    [["x", "-z", "--", "true"], "option-unknown: there is no option -z here; there are --"],
    [["x", "--constructor", "--", "true"], "option-unknown: there is no option --constructor here"],
  ])("%j is refused", (words, text) => {
    expect(failure("run", words)).toContain(text);
  });

  it("needs nothing else with --help", () => {
    expect(parseCommandLine(command("run"), ["--help"]).given.flag("help")).toBe(true);
  });
});

it("other commands take words after -- as arguments", () => {
  expect(parseCommandLine(command("show"), ["--", "-odd"]).positionals).toEqual(["-odd"]);
  expect(failure("ls", ["a", "--", "b"])).toContain('unexpected argument "b"');
});

it("options before the command belong to it", () => {
  expect(splitGlobal(["--store", "memory:", "--json", "ls", "--json", "a"])).toEqual({
    leading: ["--store", "memory:", "--json"],
    own: ["ls", "--json", "a"],
  });
  expect(splitGlobal(["--store=x", "ls"])).toEqual({ leading: ["--store=x"], own: ["ls"] });
});

describe("nearest", () => {
  const words = ["run", "ls", "show", "watch", "release", "doctor", "completion", "help"];

  it.each([
    ["rnu", "run"],
    ["relase", "release"],
    ["comp", "completion"],
    ["LS", "ls"],
    ["wacth", "watch"],
    ["unlock", undefined],
    ["x", undefined],
    ["", undefined],
  ])("%s: %s", (given, meant) => {
    expect(nearest(given, words)).toBe(meant);
  });
});
