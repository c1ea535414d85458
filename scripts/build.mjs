/** Builds dist from src, from nothing, so that no file of an earlier build is tested or packed. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { main, mustRun, root, tool } from "./lib/run.mjs";

await main(async () => {
  await rm(join(root, "dist"), { recursive: true, force: true });
  await mustRun(tool("tsc"), ["-p", "tsconfig.build.json"]);
});
