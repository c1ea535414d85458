/** Finds the suites: one file each in bench/suites, which exports `suite` under the name of its file. */
import { readdir } from "node:fs/promises";

/** @import { Suite } from "./types.ts" */

const folder = new URL("./suites/", import.meta.url);

/** The names of all suites, sorted. */
export async function suiteNames() {
  const files = await readdir(folder);
  return files
    .filter((file) => file.endsWith(".mjs"))
    .map((file) => file.slice(0, -".mjs".length))
    .toSorted();
}

/**
 * @param {string} name one of suiteNames()
 * @returns {Promise<Suite>}
 */
export async function loadSuite(name) {
  const module = await import(new URL(`${name}.mjs`, folder).href);
  return module.suite;
}
