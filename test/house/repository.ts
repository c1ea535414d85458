/** What the house tests read: the files of this repository, as text and as syntax; the rules are left to the tests. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync, type ParseResult } from "oxc-parser";

/** The repository, without a slash at the end. */
export const root: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Whether a path of the repository is there. */
export function exists(path: string): boolean {
  return existsSync(join(root, path));
}

/** The text of a file; empty when it is missing, so that a test can say what it misses. */
export function read(path: string): string {
  return exists(path) ? readFileSync(join(root, path), "utf8") : "";
}

/** Files under a folder with one of the endings, as sorted paths of the repository with slashes. */
export function filesUnder(folder: string, ...endings: readonly string[]): readonly string[] {
  if (!exists(folder)) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((path) => posix.join(folder, path.split(sep).join("/")))
    .filter((path) => endings.some((ending) => path.endsWith(ending)))
    .toSorted();
}

/** The folders directly under a folder, sorted. */
export function foldersIn(folder: string): readonly string[] {
  if (!exists(folder)) return [];
  return readdirSync(join(root, folder))
    .filter((name) => statSync(join(root, folder, name)).isDirectory())
    .toSorted();
}

/** The syntax of a TypeScript or JavaScript file. */
export function parse(path: string): ParseResult {
  const result = parseSync(path, read(path));
  if (result.errors.length > 0) throw new Error(`${path}: ${result.errors[0]?.message}`);
  return result;
}

/** The line of a position in a text, counted from 1. */
export function lineOf(text: string, position: number): number {
  return text.slice(0, position).split("\n").length;
}

/** The pages people read: the files at the top and all of docs but the generated API report. */
export const pages: readonly string[] = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...filesUnder("docs", ".md").filter((path) => !path.startsWith("docs/api/")),
].toSorted();
