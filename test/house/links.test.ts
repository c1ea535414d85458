/** Relative links in the pages lead to files and headings that exist. */
import { posix } from "node:path";
import { expect, it } from "vitest";
import { exists, lineOf, pages, read } from "./repository.ts";

/** A page without its code, line by line as before. */
function prose(path: string): string {
  return read(path)
    .replace(/^(```+)[^]*?^\1$/gm, (block) => block.replace(/[^\n]/g, ""))
    .replace(/`[^`\n]*`/g, (code) => " ".repeat(code.length));
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(path: string): readonly string[] {
  const seen = new Map<string, number>();
  const headings = read(path)
    .replace(/^(```+)[^]*?^\1$/gm, "")
    .match(/^#+ .*$/gm);
  return (headings ?? []).map((heading) => {
    const words = heading.replace(/^#+ /, "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const slug = words
      .toLowerCase()
      .trim()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}

/** What is wrong with the links of a page. */
function deadLinks(page: string): readonly string[] {
  const text = prose(page);
  const targets = [...text.matchAll(/\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|\b(?:href|src)="([^"]+)"/gm)];
  return targets.flatMap((match) => {
    const target = match[1] ?? match[2] ?? match[3] ?? "";
    if (/^[a-z][a-z+.-]*:/i.test(target)) return [];
    const [file = "", anchor] = target.split("#");
    const path = file === "" ? page : posix.join(posix.dirname(page), decodeURIComponent(file));
    const where = `${page}:${lineOf(text, match.index)}: ${target}`;
    if (!exists(path)) return [`${where} (no such file)`];
    if (anchor === undefined || !path.endsWith(".md") || anchorsOf(path).includes(anchor)) return [];
    return [`${where} (no such heading)`];
  });
}

it("there is a README", () => {
  expect(pages).toContain("README.md");
});

it.each(pages)("%s has no dead relative link", (page) => {
  expect(deadLinks(page)).toEqual([]);
});
