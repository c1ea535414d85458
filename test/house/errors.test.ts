/** The table of error codes and its page agree, both ways. */
import { expect, it } from "vitest";
import { parse, read } from "./repository.ts";

const codePattern = /\bLOCK(?:_[A-Z]+)+\b/g;
const source = "src/core/errors.ts";
const page = "docs/errors.md";

/** The codes of a source file; comments only talk about them. */
function codesInSource(): readonly string[] {
  const { comments } = parse(source);
  const text = comments.reduceRight(
    (code, { start, end }) => code.slice(0, start) + code.slice(end),
    read(source),
  );
  return sortedCodes(text);
}

function sortedCodes(text: string): readonly string[] {
  return [...new Set(text.match(codePattern))].toSorted();
}

it("every error code has a heading or a table row of its own in docs/errors.md", () => {
  const entries = read(page)
    .split("\n")
    .map((line) => /^#+ .*|^\|[^|]*\|/.exec(line)?.[0] ?? "");
  const codes = codesInSource();
  expect(codes, `codes in ${source}`).not.toEqual([]);
  expect(sortedCodes(entries.join("\n")), `codes with an entry in ${page}`).toEqual(codes);
});

it("docs/errors.md speaks of no code that does not exist", () => {
  const codes = codesInSource();
  const unknown = sortedCodes(read(page)).filter((code) => !codes.includes(code));
  expect(unknown, `codes in ${page} that ${source} does not have`).toEqual([]);
});
