/** What a command of the CLI is: its arguments, options and help as data, and the function that does it. */
import type { Output } from "./output.ts";

/** An option of a command. */
export interface OptionSpec {
  /** What stands for its value in the help; absent for one that takes none. */
  readonly value?: string;
  readonly short?: string;
  readonly help: string;
  /** The values that there are, where they can be listed: for completion. */
  readonly choices?: readonly string[];
}

/** The options of a command by their long names. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** One command. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** What follows the name, as the help shows it. */
  readonly usage: string;
  /** The arguments by their names in the help; the first `least` of them have to be given. */
  readonly takes: { readonly names: readonly string[]; readonly least: number };
  /** Whether a command to run follows after `--`. */
  readonly runsCommand?: boolean;
  /** The choices for the first argument: for completion. */
  readonly choices?: readonly string[];
  /** Paragraphs for the help. */
  readonly about: readonly string[];
  readonly options: OptionSpecs;
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  run(call: Call): Promise<Outcome>;
}

/** How a command ended: with an exit code, or as the signal has it that ended what it ran. */
export type Outcome = number | NodeJS.Signals;

/** One call of a command. */
export interface Call {
  readonly command: Command;
  readonly positionals: readonly string[];
  /** What followed `--`. */
  readonly rest: readonly string[];
  readonly given: Given;
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  /** Whether somebody can be asked. */
  readonly interactive: boolean;
}

/** Options as they were given. */
export interface Given {
  flag(name: string): boolean;
  value(name: string): string | undefined;
}

/** The options of all commands. */
export const commonOptions: OptionSpecs = {
  store: { value: "URL", help: "the store; else HOLDFAST_STORE, else the SQLite file of this user" },
  json: { help: "one JSON object per line; tokens are decimal text" },
  quiet: { short: "q", help: "no notes, only errors" },
  help: { short: "h", help: "this text" },
};

/** All options that a command takes. */
export function optionsOf(command: Command): OptionSpecs {
  return { ...command.options, ...commonOptions };
}
