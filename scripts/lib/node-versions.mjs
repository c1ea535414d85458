/** Brings the Node versions that the package is checked on, once, from script-free npm packages. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cache, mustRun } from "./run.mjs";

const folder = join(cache, "node-versions");
const systems = /** @type {Record<string, string>} */ ({ win32: "win" });

/**
 * The Node executable of each major version; this one where it is the right one, downloads otherwise.
 *
 * @param {readonly number[]} majors
 * @returns {Promise<{ major: number, node: string }[]>}
 */
export async function provideNodes(majors) {
  const own = Number.parseInt(process.versions.node, 10);
  const wanted = majors.filter((major) => major !== own && !existsSync(pathOf(major)));
  if (wanted.length > 0) {
    const name = `node-${systems[process.platform] ?? process.platform}-${process.arch}`;
    console.log(`Downloading ${name} ${wanted.join(", ")} (once)`);
    for (const major of wanted) {
      // Each in a project of its own: npm would take out those that an earlier call has brought.
      const cwd = folderOf(major);
      await mkdir(cwd, { recursive: true });
      await writeFile(join(cwd, "package.json"), '{ "private": true }\n');
      const wish = `node@npm:${name}@${major}`;
      await mustRun("npm", ["install", "--no-save", "--no-package-lock", "--ignore-scripts", wish], { cwd });
    }
  }
  const nodes = majors.map((major) => ({ major, node: major === own ? process.execPath : pathOf(major) }));
  for (const { major, node } of nodes) {
    const version = (await mustRun(node, ["--version"])).trim();
    if (!version.startsWith(`v${major}.`)) throw new Error(`${node} is ${version}, not ${major}`);
  }
  return nodes;
}

function folderOf(/** @type {number} */ major) {
  return join(folder, String(major));
}

function pathOf(/** @type {number} */ major) {
  return join(
    folderOf(major),
    "node_modules",
    "node",
    "bin",
    process.platform === "win32" ? "node.exe" : "node",
  );
}
