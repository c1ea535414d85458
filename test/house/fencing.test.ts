/** What the house demands of src/fencing: its Lua files say what they take, importing it loads no driver, each guard shows the pause story. */
import { describe, expect, it } from "vitest";
import { shapes } from "../../src/fencing/redis.ts";
import { filesUnder, parse, read } from "./repository.ts";
import { posix } from "node:path";

const folder = "src/fencing/redis/scripts";

/** What a header lists after a word. */
function listed(text: string, word: string): readonly string[] {
  const [, names = ""] = new RegExp(`^-- ${word}: (.*)$`, "m").exec(text) ?? [];
  return names.split(", ");
}

it("each script of the guard has a call site, and no other", () => {
  expect(filesUnder(folder, ".lua")).toEqual(Object.keys(shapes).map((name) => `${folder}/${name}.lua`));
});

describe.each(Object.entries(shapes))("the script %s", (name, { keys, args }) => {
  const text = read(`${folder}/${name}.lua`);

  it("takes what its header says, and gets it", () => {
    for (const word of ["Purpose", "Keys", "Arguments", "Returns"]) {
      expect(listed(text, word).join(""), `${word} of ${name}.lua`).toMatch(/\S/);
    }
    expect(listed(text, "Keys")).toEqual(keys);
    expect(listed(text, "Arguments")).toEqual(args);
    for (const [table, names] of [
      ["KEYS", keys],
      ["ARGV", args],
    ] as const) {
      const taken = [...text.matchAll(new RegExp(`local (\\w+) = table\\.remove\\(${table}, 1\\)`, "g"))];
      const used = [...text.matchAll(new RegExp(`${table}\\[(\\d+)\\]`, "g"))].map(([, at]) => Number(at));
      if (taken.length > 0) expect(taken.map(([, word]) => word)).toEqual(names);
      else expect(Math.max(...used)).toBe(names.length);
    }
  });
});

/** The modules that a file loads when it is imported. */
function loads(path: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  const { staticImports, staticExports } = parse(path).module;
  const requests = [
    ...staticImports
      .filter(({ entries }) => entries.length === 0 || entries.some((entry) => !entry.isType))
      .map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.isType ? [] : (entry.moduleRequest?.value ?? []))),
    ),
  ];
  for (const request of requests) {
    if (request.startsWith(".")) loads(posix.join(posix.dirname(path), request), seen);
    else seen.add(request);
  }
  return seen;
}

it("importing holdfast/fencing loads nothing but this package and Node", () => {
  const outside = [...loads("src/fencing/index.ts")].filter((name) => !name.startsWith("src/"));
  expect(outside.length).toBeGreaterThan(2);
  expect(outside.filter((name) => !name.startsWith("node:"))).toEqual([]);
});

const page = "docs/fencing.md";
const blocks = [...read(page).matchAll(/^```ts.*\n([^]*?)^```$/gm)].map(([, code = ""]) => code);
const examples = filesUnder("examples", ".mjs").filter((path) => path.includes("/fenced-"));

/** What holdfast/fencing has to stand in front of a resource. */
const guards = parse("src/fencing/index.ts")
  .module.staticExports.flatMap(({ entries }) => entries)
  .flatMap(({ isType, exportName: { name } }) => (isType ? [] : (name ?? [])))
  .filter((name) => /^[a-z]+(Guard|Fence|Handler)$/.test(name));

it("there are guards", () => {
  expect(guards.length).toBeGreaterThanOrEqual(9);
});

it.each(guards)("%s refuses a late write on its page, and in an example that the page links", (guard) => {
  const isRefusing = (code: string): boolean =>
    code.includes(`${guard}(`) && /rejects\([^]*LOCK_STALE/.test(code);
  expect(blocks.filter(isRefusing)).not.toEqual([]);
  const shown = examples.filter(
    (path) => read(path).includes(guard) && read(path).includes("LOCK_STALE_TOKEN"),
  );
  expect(shown).not.toEqual([]);
  for (const path of shown) expect(read(page)).toContain(`(../${path})`);
});
