/** npm run lua: writes the scripts.ts of backends from the Lua files beside them; with --check it fails when they differ. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure, main, root } from "./lib/run.mjs";

/**
 * What a script is made of: what every call needs, what is defined when it is first needed (nothing: all is defined at
 * once), and the loop.
 *
 * @typedef {{ backend: string, first: readonly string[], whenNeeded: readonly string[], last: readonly string[] }} Recipe
 */

/** @type {readonly Recipe[]} */
const recipes = [
  {
    backend: "redis",
    first: ["moment", "alone"],
    whenNeeded: ["queue", "append", "remove", "evict", "renew", "prune", "list"],
    last: ["calls"],
  },
  {
    backend: "redlock",
    first: ["values", "acquire", "store", "renew", "repair", "remove", "evict", "look"],
    whenNeeded: [],
    last: ["calls"],
  },
];

await main(async () => {
  for (const recipe of recipes) {
    const target = join(root, "src", "backends", recipe.backend, "scripts.ts");
    const fresh = await generate(recipe);
    if (!process.argv.includes("--check")) await writeFile(target, fresh);
    else if ((await readFile(target, "utf8")) !== fresh)
      throw new Failure(`scripts.ts of ${recipe.backend} is out of date: npm run lua`);
  }
});

async function generate(/** @type {Recipe} */ { backend, first, whenNeeded, last }) {
  const read = async (/** @type {readonly string[]} */ names) => {
    const folder = join(root, "src", "backends", backend, "scripts");
    const texts = names.map((name) => readFile(join(folder, `${name}.lua`), "utf8"));
    return (await Promise.all(texts)).map(strip).join("");
  };
  const named = whenNeeded.slice(1).map((name) => `${name} = ${name}`);
  const later =
    whenNeeded.length === 0
      ? ""
      : `local function define()\n${await read(whenNeeded)}return { ${named.join(", ")} }\nend\n`;
  const script = `${await read(first)}${later}${await read(last)}`;
  return `/** The Lua script as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw\`${script}\`;
`;
}

/** A script without its comments and empty lines: each client sends it. */
function strip(/** @type {string} */ text) {
  if (/`|\$\{/.test(text)) throw new Failure("a script has a backtick or ${: it cannot stand in a template");
  return text.replace(/^ *--.*\n/gm, "").replace(/^\n/gm, "");
}
