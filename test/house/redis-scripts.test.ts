/** The Lua files of the Redis backend: their headers, their functions, their call site and the text that is shipped agree. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  appendCall,
  calls,
  evictCall,
  keepCall,
  listCall,
  pruneCall,
  removeCall,
  renewCall,
} from "../../src/backends/redis/calls.ts";
import { callsScript } from "../../src/backends/redis/scripts.ts";
import { filesUnder, read, root } from "./repository.ts";

const folder = "src/backends/redis/scripts";
const files = filesUnder(folder, ".lua");
const names = Object.keys(calls);

function isCall(name: string): name is keyof typeof calls {
  return names.includes(name);
}

/** A part of a file's header: what follows the word, without the lines of the next part. */
function part(text: string, word: string): string | undefined {
  const header = /^(?:--.*\n)+/.exec(text)?.[0] ?? "";
  const found = new RegExp(`^-- ${word}: ((?:.*\\n)(?:-- {2,}.*\\n)*)`, "m").exec(header)?.[1];
  return found?.replace(/\n-- +/g, " ").trim();
}

function listed(text: string | undefined): readonly string[] {
  return text === undefined || text === "none" ? [] : text.split(", ");
}

it("there are scripts, one for each call", () => {
  expect(files.length).toBeGreaterThan(5);
  expect(files).toEqual(expect.arrayContaining(names.map((name) => `${folder}/${name}.lua`)));
});

describe.each(files)("%s", (path) => {
  const text = read(path);
  const name = path.slice(folder.length + 1, -".lua".length);

  it("says its purpose, keys, arguments and what it returns", () => {
    for (const word of ["Purpose", "Keys", "Arguments", "Returns"]) {
      expect(part(text, word), `${word} of ${path}`).toMatch(/\S/);
    }
  });

  it.runIf(isCall(name))("takes what its header says, and gets it", () => {
    if (!isCall(name)) return;
    const shape = calls[name];
    const keys = listed(part(text, "Keys"));
    const args = listed(part(text, "Arguments"));
    expect(keys, "keys at the call site").toEqual(shape.keys);
    expect(args, "arguments at the call site").toEqual(shape.args);
    const parameters = new RegExp(`^local function ${name}\\(([^)]*)\\)$`, "m").exec(text)?.[1];
    expect(parameters, "parameters of its function").toBe([...keys, ...args].join(", "));
    const entry = new RegExp(`letter == '${shape.letter}' then\\n.* = '${name}', (\\d+), '(.*)'$`, "m");
    const otherwise = new RegExp(`else\\n.* = '${name}', (\\d+), '(.*)'$`, "m");
    const loop = read(`${folder}/calls.lua`);
    const [, keyCount, pattern = ""] = entry.exec(loop) ?? otherwise.exec(loop) ?? [];
    expect(keyCount, "how many keys it has in calls.lua").toBe(String(keys.length));
    expect(pattern.match(/\(/g)?.length ?? 0, "how many arguments it has there").toBe(args.length);
  });

  it("touches no key but those that it is given", () => {
    const literal = /redis\.call\('[A-Z]+', '(?!$)/.exec(text);
    expect(literal?.[0], "a key that is written out").toBeUndefined();
  });
});

it("calls are sent with as many keys and arguments as they take", () => {
  const sent = {
    append: appendCall("id", 1, true, "w,1,,\0more"),
    remove: removeCall("id", 1n),
    evict: evictCall("id", undefined),
    keep: keepCall("id", 1n, 1),
    renew: renewCall("id", 1n, 1),
    prune: pruneCall,
    list: listCall,
  };
  const loop = read(`${folder}/calls.lua`);
  for (const [name, { keys, text }] of Object.entries(sent)) {
    if (!isCall(name)) throw new Error(`there is no call ${name}`);
    expect(keys, name).toBe(calls[name].keys.length);
    expect(text.startsWith(calls[name].letter), name).toBe(true);
    const [, pattern = ""] = new RegExp(`'${name}', \\d+, '(.*)'$`, "m").exec(loop) ?? [];
    const translated = pattern.replaceAll("%z", "\\0").replaceAll("%d", "\\d").replaceAll("%a", "[a-z]");
    if (calls[name].args.length > 0) expect(text).toMatch(new RegExp(translated, "s"));
  }
});

it("the text that is shipped is made of these files", () => {
  execFileSync(process.execPath, [join(root, "scripts/lua.mjs"), "--check"]);
  expect(callsScript).toContain("return results");
});
