/** Builds dist from src, from nothing, so that no file of an earlier build is tested or packed. */
import { copyFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { main, mustRun, root, tool } from "./lib/run.mjs";

await main(async () => {
  await rm(join(root, "dist"), { recursive: true, force: true });
  await mustRun(tool("tsc"), ["-p", "tsconfig.build.json"]);
  // What is read at run time, beside the module that reads it.
  const texts = (await readdir(join(root, "src"), { recursive: true })).filter((path) =>
    path.endsWith(".sql"),
  );
  await Promise.all(texts.map((path) => copyFile(join(root, "src", path), join(root, "dist", path))));
});
