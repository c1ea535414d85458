/** Follows emitted declarations from file to file: what an entry exports and what that refers to; printing is left to api-report.mjs. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";
import { Failure } from "./run.mjs";

/** @typedef {{ file: string, name: string }} Origin where a name is declared: a file of this package, or another package */
/** @typedef {Origin & { typeOnly: boolean }} Export a value may be exported as a type only */

/**
 * @typedef {object} Module
 * @property {Map<string, string>} texts declarations by name, without the word export
 * @property {Map<string, Origin>} imports by the name they have in this file
 * @property {Map<string, Export>} exports by exported name, as named in the file they come from
 * @property {{ file: string, typeOnly: boolean }[]} stars files of which every name is exported
 */

/** @type {Map<string, Module>} */
const modules = new Map();

/**
 * Every name that a file exports, and where it is declared.
 *
 * @param {string} file
 * @returns {Map<string, Export>}
 */
export function exportsOf(file) {
  const { exports, stars } = load(file);
  /** @type {Map<string, Export>} */
  const all = new Map();
  for (const star of stars) {
    for (const [name, { typeOnly, ...origin }] of exportsOf(star.file)) {
      all.set(name, { ...origin, typeOnly: typeOnly || star.typeOnly });
    }
  }
  for (const [exported, { file: from, name, typeOnly }] of exports) {
    const origin = from === file ? { ...originOf(file, name), typeOnly } : follow({ file: from, name });
    all.set(exported, { ...origin, typeOnly: typeOnly || origin.typeOnly });
  }
  return all;
}

/** The text of a declaration; undefined when another package declares it. */
export function textOf(/** @type {Origin} */ { file, name }) {
  return isOwn(file) ? load(file).texts.get(name) : undefined;
}

/** Where the types and values that a declaration refers to are declared, globals left out. */
export function referencesOf(/** @type {Origin} */ origin) {
  const { texts, imports } = load(origin.file);
  // Types begin with a capital; values appear behind typeof or as a computed key.
  const names = textOf(origin)?.match(/\b[A-Z]\w*|(?<=\btypeof )\w+|(?<=\[)\w+(?=\])/g) ?? [];
  return [...new Set(names)]
    .filter((name) => name !== origin.name && (texts.has(name) || imports.has(name)))
    .map((name) => originOf(origin.file, name));
}

/**
 * @param {string} file
 * @param {string} name
 */
function originOf(file, name) {
  const imported = load(file).imports.get(name);
  return imported === undefined ? { file, name } : follow(imported);
}

/** @returns {Export} */
function follow(/** @type {Origin} */ { file, name }) {
  if (!isOwn(file)) return { file, name, typeOnly: false };
  const origin = exportsOf(file).get(name);
  if (origin === undefined) throw new Failure(`${file} does not export ${name}`);
  return origin;
}

function isOwn(/** @type {string} */ file) {
  return file.endsWith(".d.ts");
}

/** @returns {Module} */
function load(/** @type {string} */ file) {
  let module = modules.get(file);
  if (module === undefined) modules.set(file, (module = parse(file, readFileSync(file, "utf8"))));
  return module;
}

/**
 * @param {string} file
 * @param {string} source
 */
function parse(file, source) {
  const { program, module } = parseSync(file, source);
  const refuse = (/** @type {string} */ what) => {
    throw new Failure(`${file}: ${what} is not understood by the API report; import and export by name`);
  };
  const resolve = (/** @type {string} */ request) =>
    request.startsWith(".") ? join(dirname(file), request.replace(/\.[jt]s$/, ".d.ts")) : request;

  /** @type {Module} */
  const result = { texts: new Map(), imports: new Map(), exports: new Map(), stars: [] };
  for (const statement of program.body) {
    if (statement.type === "ExportDefaultDeclaration") refuse("export default");
    const exported = statement.type === "ExportNamedDeclaration";
    const declared = exported ? statement.declaration : statement;
    const text = declared ? source.slice(declared.start, declared.end) : "";
    if (/\bimport\(/.test(text)) refuse("an inline import");
    for (const name of namesDeclaredBy(declared)) {
      const overload = result.texts.get(name);
      result.texts.set(name, overload === undefined ? text : `${overload}\n${text}`);
      if (exported) result.exports.set(name, { file, name, typeOnly: false });
    }
  }
  for (const { moduleRequest, entries } of module.staticImports) {
    for (const { importName, localName } of entries) {
      const from = resolve(moduleRequest.value);
      if (importName.name === null && isOwn(from)) refuse("import * or a default import");
      result.imports.set(localName.value, { file: from, name: importName.name ?? "*" });
    }
  }
  for (const entry of module.staticExports.flatMap(({ entries }) => entries)) {
    const { importName, exportName, localName, isType: typeOnly } = entry;
    const from = entry.moduleRequest === null ? file : resolve(entry.moduleRequest.value);
    const name = importName.name ?? localName.name;
    if (exportName.name === null) result.stars.push({ file: from, typeOnly });
    else if (name === null) refuse("export * as");
    // What is declared and exported at once is there already.
    else if (!result.exports.has(exportName.name)) {
      result.exports.set(exportName.name, { file: from, name, typeOnly });
    }
  }
  return result;
}

/**
 * @param {import("oxc-parser").Statement | import("oxc-parser").Declaration | null} node
 * @returns {string[]}
 */
function namesDeclaredBy(node) {
  if (node === null) return [];
  if (node.type === "VariableDeclaration") {
    return node.declarations.flatMap(({ id }) => (id.type === "Identifier" ? id.name : []));
  }
  return "id" in node && node.id !== null && "name" in node.id ? [node.id.name] : [];
}
