/** What docs/cli.md lists, as data: messages, exit codes, options and the first example. The rules are left to the tests. */
import { read } from "./repository.ts";

const page = read("docs/cli.md");

/** A message as the page lists it. */
export interface ListedMessage {
  readonly id: string;
  /** null for a note. */
  readonly code: number | null;
  readonly text: string;
  readonly hint: string;
}

/** The rows of the table under a heading, their cells without marks of code. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim().replace(/^`(.*)`$/, "$1")),
  );
}

/** The messages of the page. */
export const cliMessages: readonly ListedMessage[] = rowsUnder("Messages").map(
  ([id = "", code = "", text = "", hint = ""]) => ({
    id,
    code: code === "–" ? null : Number(code),
    text,
    hint,
  }),
);

/** The exit codes of the page, as they are written there. */
export const cliExitCodes: readonly string[] = rowsUnder("Exit codes").map(([code = ""]) => code);

/** The long options that the tables under a heading list. */
export function cliOptionsUnder(heading: string): readonly string[] {
  return rowsUnder(heading).flatMap(([cell = ""]) => /--([a-z][a-z-]*)/.exec(cell)?.[1] ?? []);
}

/** The first block of the page that is for a shell. */
export const firstExample: string = /^```sh\n([^]*?)^```$/m.exec(page)?.[1] ?? "";
