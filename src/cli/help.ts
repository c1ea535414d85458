/** The help as text, made from the tables of the commands. */
import { usageOf } from "./arguments.ts";
import { type Command, commonOptions, type OptionSpecs } from "./command.ts";

const width = 96;

/** The help of one command. */
export function commandHelp(command: Command): string {
  const parts = [
    `${usageOf(command)}\n\n${command.summary}.`,
    ...command.about.map((paragraph) => wrap(paragraph, 0)),
    section("Options", optionLines({ ...command.options, ...commonOptions })),
    section(
      "Examples",
      command.examples.map(([line, meaning]) => `  ${line}\n      ${meaning}`),
    ),
  ];
  return parts.join("\n\n");
}

/** The help of the whole. */
export function overview(commands: readonly Command[]): string {
  const longest = Math.max(...commands.map(({ name }) => name.length));
  return [
    "holdfast <command> [options]\n\nOne at a time, across all processes that use the same store.",
    section(
      "Commands",
      commands.map(({ name, summary }) => `  ${name.padEnd(longest)}  ${summary}`),
    ),
    section("Options of all commands", optionLines(commonOptions)),
    section("Examples", [
      "  holdfast run nightly-report --wait 10s -- ./report.sh",
      "  holdfast ls",
      "  holdfast help run",
    ]),
  ].join("\n\n");
}

function section(title: string, lines: readonly string[]): string {
  return `${title}:\n${lines.join("\n")}`;
}

function optionLines(specs: OptionSpecs): readonly string[] {
  const heads = Object.entries(specs).map(([name, spec]) => {
    const short = spec.short === undefined ? "    " : `-${spec.short}, `;
    return `  ${short}--${name}${spec.value === undefined ? "" : ` ${spec.value}`}`;
  });
  const column = Math.max(...heads.map((head) => head.length)) + 2;
  return Object.values(specs).map(
    (spec, index) => (heads[index] ?? "").padEnd(column) + wrap(spec.help, column),
  );
}

function wrap(text: string, indent: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > width) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line].join(`\n${" ".repeat(indent)}`);
}
