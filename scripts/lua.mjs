/** npm run lua: writes src/backends/redis/scripts.ts from the Lua files beside it; with --check it fails when they differ. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure, main, root } from "./lib/run.mjs";

const folder = join(root, "src", "backends", "redis");

/** The files that the script is made of: what every call needs, what is defined when it is first needed, and the loop. */
const first = ["moment", "keep", "quick"];
const whenNeeded = ["queue", "append", "remove", "evict", "renew", "prune", "list"];
const last = ["calls"];

await main(async () => {
  const target = join(folder, "scripts.ts");
  const fresh = await generate();
  if (!process.argv.includes("--check")) return writeFile(target, fresh);
  if ((await readFile(target, "utf8")) !== fresh) throw new Failure("scripts.ts is out of date: npm run lua");
});

async function generate() {
  const read = async (/** @type {readonly string[]} */ names) => {
    const texts = names.map((name) => readFile(join(folder, "scripts", `${name}.lua`), "utf8"));
    return (await Promise.all(texts)).map(strip).join("");
  };
  const named = whenNeeded.slice(1).map((name) => `${name} = ${name}`);
  const script = `${await read(first)}local function define()
${await read(whenNeeded)}return { ${named.join(", ")} }
end
${await read(last)}`;
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
