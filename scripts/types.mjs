/** npm run types: type-checks the whole repository and every folder that brings a tsconfig.json of its own. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Failure, main, root, run, tool } from "./lib/run.mjs";

await main(async () => {
  const folders = (await readdir(root)).filter((name) => name !== "node_modules" && !name.startsWith("."));
  const projects = [".", ...folders].filter((folder) => existsSync(join(root, folder, "tsconfig.json")));
  /** @type {string[]} */
  const failed = [];
  for (const project of projects) {
    const { code } = await run(tool("tsc"), ["-p", project]);
    if (code !== 0) failed.push(project);
  }
  if (failed.length > 0) throw new Failure(`Type errors in: ${failed.join(", ")}`);
});
