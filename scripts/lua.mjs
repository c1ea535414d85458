/** npm run lua: writes the scripts.ts of the backends and the guard of Redis from the Lua files beside them; with --check it fails when they differ. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Failure, main, root } from "./lib/run.mjs";

const guardFolder = join(root, "src", "fencing", "redis");

/**
 * What a script is made of: what every call needs; what is defined when it is first needed, and what that shares; and
 * the loop.
 *
 * @typedef {object} Recipe
 * @property {string} backend
 * @property {readonly string[]} first
 * @property {readonly string[]} shared
 * @property {readonly string[]} whenNeeded
 * @property {readonly string[]} last
 * @property {readonly Alone[]} alone scripts for one call
 */

/** @typedef {{ name: string, made: readonly string[], end: string }} Alone made of these files, and a line that calls */

/** @type {readonly Recipe[]} */
const recipes = [
  {
    backend: "redis",
    first: ["alone", "leave", "first", "moment", "keep", "quick"],
    shared: ["queue"],
    whenNeeded: ["append", "bequeath", "remove", "evict", "renew", "prune", "list"],
    last: ["calls"],
    alone: [],
  },
  {
    backend: "redlock",
    first: ["values", "acquire", "take", "store", "remove", "release"],
    shared: [],
    whenNeeded: ["renew", "repair", "evict", "look"],
    last: ["calls"],
    alone: [
      {
        name: "acquire",
        made: ["values", "acquire"],
        end: "local result = acquire(KEYS[2], ARGV[1], ARGV[2])\nkeepCounter()\nreturn { nowUs, result }\n",
      },
      {
        name: "store",
        made: ["values", "store"],
        end: "local result = store(KEYS[2], ARGV[1], ARGV[2])\nkeepCounter()\nreturn result\n",
      },
      { name: "free", made: ["free"], end: "" },
      { name: "ours", made: ["ours"], end: "" },
    ],
  },
];

await main(async () => {
  for (const recipe of recipes) {
    await put(join(root, "src", "backends", recipe.backend, "scripts.ts"), await generate(recipe));
  }
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

async function generate(/** @type {Recipe} */ { backend, first, shared, whenNeeded, last, alone }) {
  const read = async (/** @type {readonly string[]} */ names) => {
    const folder = join(root, "src", "backends", backend, "scripts");
    const texts = names.map((name) => readFile(join(folder, `${name}.lua`), "utf8"));
    return (await Promise.all(texts)).map(strip).join("");
  };
  const named = whenNeeded.map((name) => `${name} = ${name}`);
  const script = `${await read(first)}local function define()
${await read([...shared, ...whenNeeded])}return { ${named.join(", ")} }
end
${await read(last)}`;
  const others = alone.map(
    async ({ name, made, end }) => `
/** One call alone: scripts/${name}.lua and what it needs. */
export const ${name}Script: string = String.raw\`${await read(made)}${end}\`;
`,
  );
  const which = alone.length === 0 ? "script" : "scripts";
  return `/** The Lua ${which} as text, made by npm run lua from the files in scripts/; not edited by hand. */

/** Runs calls, one after the other: scripts/calls.lua and what it is made of. */
export const callsScript: string = String.raw\`${script}\`;
${(await Promise.all(others)).join("")}`;
}

/** A script without its comments and empty lines: each client sends it. */
function strip(/** @type {string} */ text) {
  if (/`|\$\{/.test(text)) throw new Failure("a script has a backtick or ${: it cannot stand in a template");
  return text.replace(/^ *--.*\n/gm, "").replace(/^\n/gm, "");
}
