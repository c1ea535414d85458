/** npm run lua: writes the scripts.ts of the Redis backend and guard from the Lua files beside them; with --check it fails when they differ. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure, main, root } from "./lib/run.mjs";

const folder = join(root, "src", "backends", "redis");
const guardFolder = join(root, "src", "fencing", "redis");

/** The files that the script is made of: what every call needs, what is defined when it is first needed, and the loop. */
const first = ["moment", "quick"];
const whenNeeded = ["queue", "append", "remove", "evict", "renew", "prune", "list"];
const last = ["calls"];

await main(async () => {
  await put(join(folder, "scripts.ts"), await generate());
  await put(join(guardFolder, "scripts.ts"), await generateGuard());
});

/** Writes a file, or compares it. */
async function put(/** @type {string} */ target, /** @type {string} */ fresh) {
  if (!process.argv.includes("--check")) return writeFile(target, fresh);
  if ((await readFile(target, "utf8")) !== fresh) throw new Failure(`${target} is out of date: npm run lua`);
}

async function generateGuard() {
  const [check, set] = await Promise.all(
    ["check", "set"].map(async (name) =>
      strip(await readFile(join(guardFolder, "scripts", `${name}.lua`), "utf8")),
    ),
  );
  return `/** The Lua scripts of the guard as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Shows a token, and ends there if it is stale: scripts/check.lua. */
export const checkScript: string = String.raw\`${check}\`;

/** Sets a value: scripts/set.lua. */
export const setScript: string = String.raw\`${set}\`;
`;
}

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
