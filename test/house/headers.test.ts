/** Every source file opens with a sentence that says what it is. */
import { expect, it } from "vitest";
import { filesUnder, read } from "./repository.ts";

const folders = ["src", "test", "bench", "examples", "scripts"];
const sources = folders.flatMap((folder) => filesUnder(folder, ".ts", ".mjs", ".js", ".lua", ".sql"));

/** The text of the comment that a file starts with, after a shebang; undefined when it starts otherwise. */
function header(text: string): string | undefined {
  const opening = /^(?:#!.*\n)?(?:\/\*\*?([^]*?)\*\/|((?:(?:\/\/|--).*\n)+))/.exec(text);
  return (opening?.[1] ?? opening?.[2])
    ?.replace(/^\s*(?:\*|\/\/|--)? ?/gm, "")
    .replace(/\s+/g, " ")
    .trim();
}

it("sources are found", () => {
  expect(sources.length).toBeGreaterThan(10);
});

it("every source file opens with a sentence", () => {
  const bad = sources.filter((path) => !/^(?:\S+ ){3,}\S+[.:]/.test(header(read(path)) ?? ""));
  expect(bad, "files without an opening comment of at least one sentence").toEqual([]);
});
