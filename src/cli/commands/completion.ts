/** `holdfast completion`: the completion script for a shell. */
import type { Command } from "../command.ts";
import { completions } from "../completion.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../messages.ts";

/** The command; it asks for all commands when it runs, being one of them. */
export function completionCommand(all: () => readonly Command[]): Command {
  const shells = Object.keys(completions);
  return {
    name: "completion",
    summary: "Print the completion script for bash, zsh or fish",
    usage: shells.join("|"),
    takes: { names: ["a shell"], least: 1 },
    choices: shells,
    about: [],
    options: {},
    examples: [
      ["source <(holdfast completion bash)", "in ~/.bashrc"],
      ["holdfast completion zsh > ~/.zfunc/_holdfast", "a folder of your $fpath"],
      ["holdfast completion fish > ~/.config/fish/completions/holdfast.fish", "once"],
    ],

    async run({ positionals: [shell = ""], output }) {
      const script = completions[shell];
      if (script === undefined) {
        const reason = `there is no completion for ${JSON.stringify(shell)}; there is ${shells.join(", ")}`;
        throw new Failure("value-refused", { reason, command: "completion" });
      }
      output.line(script(all()).trimEnd());
      return exitCodes.ok;
    },
  };
}
