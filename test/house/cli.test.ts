/** The CLI and its page agree, both ways: messages, exit codes, commands and options. */
import { describe, expect, it } from "vitest";
import { parseCommandLine } from "../../src/cli/arguments.ts";
import { commonOptions } from "../../src/cli/command.ts";
import { commands } from "../../src/cli/commands/index.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { messages } from "../../src/cli/messages.ts";
import { cliExitCodes, cliMessages, cliOptionsUnder } from "./cli-page.ts";
import { filesUnder, read } from "./repository.ts";

it("every message is in docs/cli.md as it is in the table, and no other", () => {
  const inSource = Object.entries(messages).map(([id, template]) => ({
    id,
    code: template.exit === null ? null : exitCodes[template.exit],
    text: template.text,
    hint: "hint" in template ? template.hint : "",
  }));
  const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1);
  expect(cliMessages.toSorted(byId)).toEqual(inSource.toSorted(byId));
});

it("every exit code is in docs/cli.md, and each comes with a message that the tests produce", () => {
  expect(cliExitCodes).toEqual([...Object.values(exitCodes).map(String), "128 + n"]);
  const withMessage = new Set(cliMessages.map(({ code }) => code));
  expect(Object.values(exitCodes).filter((code) => code !== 0 && !withMessage.has(code))).toEqual([]);
});

it("only the table of messages and of exit codes has numbers to end with", () => {
  const sources = filesUnder("src/cli", ".ts").filter((path) => !path.endsWith("exit-codes.ts"));
  const found = sources.filter((path) => /\b(?:exit|exitCode) ?[=(:] ?\d/.test(read(path)));
  expect(found).toEqual([]);
});

describe.each(commands)("command $name", (command) => {
  it("is in docs/cli.md with its options", () => {
    const listed = [...cliOptionsUnder(command.name), ...cliOptionsUnder("Commands")];
    const inProse = read("docs/cli.md");
    expect(inProse).toContain(`\`${command.name}\``);
    for (const option of Object.keys(command.options)) {
      const there = listed.includes(option) || inProse.includes(`\`--${option} `);
      expect(there, `--${option} of ${command.name}`).toBe(true);
    }
    const own = cliOptionsUnder(command.name).filter((option) => !Object.hasOwn(command.options, option));
    expect(own, "options that it does not have").toEqual([]);
  });

  it("has examples that are right", () => {
    for (const [line] of command.examples) {
      // What follows a pipe or a redirection is another program's; here no word before has a space or a quote in it.
      const [own = ""] = line.replace(/^source <\((.*)\)$/, "$1").split(/ (?:\||>+) /);
      const [holdfast, name, ...words] = own.split(" ");
      expect([holdfast, name]).toEqual(["holdfast", command.name]);
      expect(() => parseCommandLine(command, words)).not.toThrow();
    }
  });
});

it("the options of all commands are in docs/cli.md", () => {
  expect(cliOptionsUnder("Commands")).toEqual(Object.keys(commonOptions));
});
