/** npm run api: writes docs/api, the public declarations of every entry of the package; with --check it fails when they differ. */
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { exportsOf, referencesOf, textOf } from "./lib/declarations.mjs";
import { cache, Failure, main, mustRun, readManifest, root, run, tool } from "./lib/run.mjs";

/** @typedef {import("./lib/declarations.mjs").Origin} Origin */
/** @typedef {import("./lib/declarations.mjs").Export} Export */
/** @typedef {{ specifier: string, exports: Map<string, Export> }} Entry */

const declarations = join(cache, "api", "declarations");
const fresh = join(cache, "api", "report");
const checkedIn = join(root, "docs", "api");

await main(async () => {
  await rm(join(cache, "api"), { recursive: true, force: true });
  await mkdir(fresh, { recursive: true });
  const emit = ["--emitDeclarationOnly", "--removeComments", "--outDir", declarations];
  await mustRun(tool("tsc"), ["-p", "tsconfig.build.json", ...emit]);

  const entries = await readEntries();
  for (const entry of entries) {
    const name = entry.specifier.replaceAll("/", "-");
    await writeFile(join(fresh, `${name}.api.md`), report(entry, entries));
  }
  if (process.argv.includes("--check")) return compare();
  await rm(checkedIn, { recursive: true, force: true });
  await cp(fresh, checkedIn, { recursive: true });
  console.log(`docs/api: ${entries.map(({ specifier }) => specifier).join(", ")}`);
});

/** @returns {Promise<Entry[]>} */
async function readEntries() {
  const { entries } = await readManifest();
  return entries
    .filter(({ target }) => target.endsWith(".js"))
    .map(({ specifier, target }) => ({
      specifier,
      exports: exportsOf(join(declarations, target.replace(/^\.\/dist\//, "").replace(/\.js$/, ".d.ts"))),
    }));
}

async function compare() {
  const hint =
    "A change of the public surface is a decision: look at it, run `npm run api`, commit docs/api.";
  if (!existsSync(checkedIn)) throw new Failure(`docs/api is missing. ${hint}`);
  const folders = [checkedIn, fresh].map((folder) => relative(root, folder));
  const { code, output } = await run("git", ["diff", "--no-index", "--no-color", ...folders], {
    quiet: true,
  });
  if (code !== 0) throw new Failure(`${output}\ndocs/api is out of date. ${hint}`);
  console.log("docs/api is up to date");
}

/**
 * The report of one entry. What another entry exports as well is shown there, by the first that does.
 *
 * @param {Entry} entry
 * @param {readonly Entry[]} entries
 */
function report(entry, entries) {
  /** @type {string[]} */
  const own = [];
  /** @type {Map<string, string>} */
  const inner = new Map();
  /** @type {Set<string>} */
  const imports = new Set();
  const visited = new Set([...entry.exports.values()].map(idOf));

  const visit = (/** @type {Origin} */ origin) => {
    for (const reference of referencesOf(origin)) {
      if (visited.has(idOf(reference))) continue;
      visited.add(idOf(reference));
      const text = textOf(reference);
      const home =
        text === undefined ? { specifier: reference.file, name: reference.name } : homeOf(reference, entries);
      if (home !== undefined) imports.add(`import { ${home.name} } from "${home.specifier}";`);
      else {
        inner.set(`${reference.name} ${reference.file}`, text ?? "");
        visit(reference);
      }
    }
  };

  for (const [name, origin] of sorted(entry.exports)) {
    const home = textOf(origin) === undefined ? origin.file : homeOf(origin, entries)?.specifier;
    own.push(home === entry.specifier ? declare(name, origin) : `export { ${name} } from "${home}";`);
    if (home === entry.specifier) visit(origin);
  }
  return page(
    entry.specifier,
    [...imports].toSorted(),
    own,
    sorted(inner).map(([, text]) => text),
  );
}

/**
 * The first entry that exports something, and under which name.
 *
 * @param {Origin} origin
 * @param {readonly Entry[]} entries
 */
function homeOf(origin, entries) {
  for (const { specifier, exports } of entries) {
    for (const [name, exported] of exports) if (idOf(exported) === idOf(origin)) return { specifier, name };
  }
  return undefined;
}

function idOf(/** @type {Origin} */ { file, name }) {
  return `${file}#${name}`;
}

/**
 * @template T
 * @param {Map<string, T>} map
 */
function sorted(map) {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * The declaration of an exported name; a value that is exported as a type only, or under another name, shows it.
 *
 * @param {string} name
 * @param {Export} origin
 */
function declare(name, origin) {
  const text = textOf(origin) ?? "";
  const asType = origin.typeOnly && text.startsWith("declare ");
  if (name === origin.name && !asType) return text.replace(/^(?=[a-z])/gm, "export ");
  const alias = name === origin.name ? name : `${origin.name} as ${name}`;
  return `${text}\nexport ${asType ? "type " : ""}{ ${alias} };`;
}

/**
 * @param {string} specifier
 * @param {readonly string[]} imports
 * @param {readonly string[]} own
 * @param {readonly string[]} inner
 */
function page(specifier, imports, own, inner) {
  const parts = [
    imports.join("\n"),
    ...own,
    ...(inner.length > 0 ? ["// Not exported, but part of the above.", ...inner] : []),
  ];
  return [
    `# API of \`${specifier}\``,
    "Generated by `npm run api` from the emitted declarations; not edited by hand.",
    `\`\`\`ts\n${parts.filter((part) => part !== "").join("\n\n")}\n\`\`\`\n`,
  ].join("\n\n");
}
