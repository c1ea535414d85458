/** From the words of a command line to a call: what is not in the table of a command is refused with a hint. */
import { parseArgs } from "node:util";
import { type Command, commonOptions, type Given, optionsOf, type OptionSpecs } from "./command.ts";
import { Failure } from "./messages.ts";
import { nearest } from "./suggest.ts";

/** A command line taken apart. */
export interface Parsed {
  readonly positionals: readonly string[];
  readonly rest: readonly string[];
  readonly given: Given;
}

/** Takes the words after a command's name apart. `--help` excuses whatever else is missing. */
export function parseCommandLine(command: Command, words: readonly string[]): Parsed {
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const rest = end < 0 ? [] : words.slice(end + 1);
  const { positionals, given } = parseOptions(own, optionsOf(command), command.name);
  if (given.flag("help")) return { positionals, rest, given };
  if (command.runsCommand !== true)
    return { positionals: counted(command, [...positionals, ...rest]), rest: [], given };
  const checked = counted(command, positionals);
  if (rest.length === 0)
    throw new Failure("argument-missing", { argument: "a command after --", usage: usageOf(command) });
  return { positionals: checked, rest, given };
}

/** The options before the command, and where the command's own words begin. */
export function splitGlobal(words: readonly string[]): {
  leading: readonly string[];
  own: readonly string[];
} {
  let index = 0;
  while (index < words.length && words[index]?.startsWith("-") === true) {
    const takesNext = words[index] === "--store";
    index += takesNext ? 2 : 1;
  }
  return { leading: words.slice(0, index), own: words.slice(index) };
}

/** How a command is called, in one line. */
export function usageOf(command: Command): string {
  return `holdfast ${command.name} ${command.usage}`.trimEnd();
}

/** Takes options apart by a table of them. */
export function parseOptions(
  words: readonly string[],
  specs: OptionSpecs,
  command: string,
): { positionals: readonly string[]; given: Given } {
  const flags = new Set<string>();
  const values = new Map<string, string>();
  const positionals: string[] = [];
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, optionOf(spec)])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined;
    if (spec === undefined) throw unknownOption(token.rawName, specs);
    const option = token.rawName;
    if (spec.value === undefined) {
      if (token.value !== undefined) throw new Failure("option-with-value", { option, command });
      flags.add(token.name);
    } else {
      const swallowed = token.inlineValue === false && token.value.startsWith("-");
      if (token.value === undefined || swallowed)
        throw new Failure("option-without-value", { option, command });
      values.set(token.name, token.value);
    }
  }
  return { positionals, given: { flag: (name) => flags.has(name), value: (name) => values.get(name) } };
}

function optionOf({ value, short }: { value?: string; short?: string }): {
  type: "string" | "boolean";
  short?: string;
} {
  const type = value === undefined ? "boolean" : "string";
  return short === undefined ? { type } : { type, short };
}

function unknownOption(given: string, specs: OptionSpecs): Failure {
  const names = Object.keys({ ...commonOptions, ...specs }).map((name) => `--${name}`);
  const meant = nearest(given, names);
  const suggestion = meant === undefined ? `there are ${names.join(", ")}` : `did you mean ${meant}?`;
  return new Failure("option-unknown", { given, suggestion });
}

function counted(command: Command, positionals: readonly string[]): readonly string[] {
  const { names, least } = command.takes;
  const extra = positionals[names.length];
  if (extra !== undefined)
    throw new Failure("argument-unexpected", { given: extra, usage: usageOf(command) });
  if (positionals.length >= least) return positionals;
  const argument = names[positionals.length] ?? "more";
  throw new Failure("argument-missing", { argument, usage: usageOf(command) });
}
