/** `holdfast help`: the help, of the whole or of one command. */
import type { Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { commandHelp, overview } from "../help.ts";
import { Failure } from "../messages.ts";
import { nearest } from "../suggest.ts";

/** The command; it asks for all commands when it runs, being one of them. */
export function helpCommand(all: () => readonly Command[]): Command {
  return {
    name: "help",
    summary: "Show the help of a command",
    usage: "[command]",
    takes: { names: ["a command"], least: 0 },
    get choices() {
      return all().map(({ name }) => name);
    },
    about: [],
    options: {},
    examples: [["holdfast help run", "the same as holdfast run --help"]],

    async run({ positionals: [name], output }) {
      const commands = all();
      if (name === undefined) {
        output.line(overview(commands));
        return exitCodes.ok;
      }
      const command = commands.find((one) => one.name === name);
      if (command === undefined) throw unknownCommand(name, commands);
      output.line(commandHelp(command));
      return exitCodes.ok;
    },
  };
}

/** The failure to find a command, with the one that was probably meant. */
export function unknownCommand(given: string, commands: readonly Command[]): Failure {
  const names = commands.map(({ name }) => name);
  const meant = nearest(given, names);
  const suggestion = meant === undefined ? `there are ${names.join(", ")}` : `did you mean ${meant}?`;
  return new Failure("command-unknown", { given, suggestion });
}
