/** The Lua files of the backends on Redis: their headers, their functions, their call site and the text that is shipped agree. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  appendCall,
  bequeathCall,
  calls as ofRedis,
  evictCall,
  keepCall,
  listCall,
  Manner,
  ownOf,
  pruneCall,
  removeCall,
  renewCall,
  wholeAppend,
} from "../../src/backends/redis/calls.ts";
import { callsScript as redisScript } from "../../src/backends/redis/scripts.ts";
import { calls as ofRedlock } from "../../src/backends/redlock/calls.ts";
import { callsScript as redlockScript } from "../../src/backends/redlock/scripts.ts";
import { filesUnder, read, root } from "./repository.ts";

/** What the house looks at of a call. */
interface Shape {
  readonly letter: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

const backends: readonly { name: string; calls: Readonly<Record<string, Shape>>; script: string }[] = [
  { name: "redis", calls: ofRedis, script: redisScript },
  { name: "redlock", calls: ofRedlock, script: redlockScript },
];

/** A part of a file's header: what follows the word, without the lines of the next part. */
function part(text: string, word: string): string | undefined {
  const header = /^(?:--.*\n)+/.exec(text)?.[0] ?? "";
  const found = new RegExp(`^-- ${word}: ((?:.*\\n)(?:-- {2,}.*\\n)*)`, "m").exec(header)?.[1];
  return found?.replace(/\n-- +/g, " ").trim();
}

function listed(text: string | undefined): readonly string[] {
  return text === undefined || text === "none" ? [] : text.split(", ");
}

describe.each(backends)("scripts of $name", ({ name: backend, calls, script }) => {
  const folder = `src/backends/${backend}/scripts`;
  const files = filesUnder(folder, ".lua");

  it("there are scripts, one for each call", () => {
    expect(files.length).toBeGreaterThan(5);
    expect(files).toEqual(expect.arrayContaining(Object.keys(calls).map((name) => `${folder}/${name}.lua`)));
  });

  it.each(files)("%s says its purpose, keys, arguments and what it returns", (path) => {
    for (const word of ["Purpose", "Keys", "Arguments", "Returns"]) {
      expect(part(read(path), word), `${word} of ${path}`).toMatch(/\S/);
    }
  });

  it.each(Object.entries(calls))("%s takes what its header says, and gets it", (name, shape) => {
    const text = read(`${folder}/${name}.lua`);
    const keys = listed(part(text, "Keys"));
    const args = listed(part(text, "Arguments"));
    expect(keys, "keys at the call site").toEqual(shape.keys);
    expect(args, "arguments at the call site").toEqual(shape.args);
    const parameters = new RegExp(`^local function ${name}\\(([^)]*)\\)$`, "m").exec(text)?.[1];
    expect(parameters, "parameters of its function").toBe([...keys, ...args].join(", "));
    // Arguments are told by a pattern that takes them out of one text, or by how many words they are.
    const rest = `.* = (?:rarely\\.)?'?${name}'?, (\\d+), (?:'(.*)'|(\\d+))$`;
    const entry = new RegExp(`letter == '${shape.letter}' then\\n${rest}`, "m");
    const otherwise = new RegExp(`else\\n${rest}`, "m");
    const loop = read(`${folder}/calls.lua`);
    const [, keyCount, pattern, argCount] = entry.exec(loop) ?? otherwise.exec(loop) ?? [];
    expect(keyCount, "how many keys it has in calls.lua").toBe(String(keys.length));
    const counted = argCount === undefined ? (pattern?.match(/\(/g)?.length ?? 0) : Number(argCount);
    expect(counted, "how many arguments it has there").toBe(args.length);
  });

  it.each(files)("%s touches no key but those that it is given", (path) => {
    const literal = /redis\.call\('[A-Z]+', '(?!$)/.exec(read(path));
    expect(literal?.[0], "a key that is written out").toBeUndefined();
  });

  it("the text that is shipped ends with the loop", () => {
    expect(script).toMatch(/^return (?:.* or )?results$/m);
  });
});

function isRedisCall(name: string): name is keyof typeof ofRedis {
  return Object.hasOwn(ofRedis, name);
}

it("calls are sent with as many keys and arguments as they take", () => {
  const appended = appendCall("id", new Manner(1, true, "w,1,,\0more"));
  const sent = {
    append: { ...appended, text: wholeAppend(appended.text, appended.manner?.text ?? "") },
    remove: removeCall("id", 1n),
    bequeath: bequeathCall("id", 1n, "heir"),
    evict: evictCall("id", undefined),
    keep: keepCall(1, 1, ownOf("id", 1n)),
    renew: renewCall("id", 1n, 1),
    prune: pruneCall,
    list: listCall,
  };
  const loop = read("src/backends/redis/scripts/calls.lua");
  for (const [name, { keys, text }] of Object.entries(sent)) {
    if (!isRedisCall(name)) throw new Error(`there is no call ${name}`);
    expect(keys, name).toBe(ofRedis[name].keys.length);
    expect(text.startsWith(ofRedis[name].letter), name).toBe(true);
    const [, pattern = ""] = new RegExp(`'${name}', \\d+, '(.*)'$`, "m").exec(loop) ?? [];
    const translated = pattern.replaceAll("%z", "\\0").replaceAll("%d", "\\d").replaceAll("%a", "[a-z]");
    if (ofRedis[name].args.length > 0) expect(text).toMatch(new RegExp(translated, "s"));
  }
});

it("the texts that are shipped are made of these files", () => {
  execFileSync(process.execPath, [join(root, "scripts/lua.mjs"), "--check"]);
});
