/** Several processes that create the tables of a SQL backend at the same time. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { root } from "../house/repository.ts";

const execute = promisify(execFile);

/** The versions that each process says it has applied. */
export async function inProcesses(
  count: number,
  backend: string,
  factory: string,
  url: string,
): Promise<readonly number[][]> {
  const module = pathToFileURL(join(root, "dist", "backends", backend, "index.js")).href;
  const script = `import { ${factory} } from ${JSON.stringify(module)};
const client = ${factory}({ url: ${JSON.stringify(url)}, deadline: "30s" });
console.log(JSON.stringify(await client.migrate()));
await client.close();`;
  const runs = await Promise.all(
    Array.from({ length: count }, () => execute(process.execPath, ["--input-type=module", "-e", script])),
  );
  return runs.map(({ stdout }): number[] => JSON.parse(stdout));
}
