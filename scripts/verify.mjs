/** npm run verify: `holdfast verify` on throwaway servers of each kind, briefly, two kinds at a time; part of what CI runs. Runs on dist. */
import { join } from "node:path";
import { cache, Failure, main, root, run } from "./lib/run.mjs";

/** Which faults: those that a short time is enough for. */
const faults = ["pause", "kill", "hang", "blackhole", "drop-replies", "reset"];

await main(async () => {
  const names = ["redis", "redlock", "etcd", "zookeeper", "postgres"];
  /** @type {string[]} */
  const failed = [];
  const work = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const { code, output } = await verify(name);
      console.log(`\n--- ${name}\n${output.trimEnd()}`);
      if (code !== 0) failed.push(name);
    }
  };
  await Promise.all([work(), work()]);
  if (failed.length > 0) throw new Failure(`Not valid: ${failed.join(", ")}. Reports are in .cache/verify.`);
});

/** @param {string} name */
function verify(name) {
  const out = join(cache, "verify", name);
  const words = ["verify", "--cluster", name, "--for", "20s", "--ttl", "1s", "--clients", "4", "--out", out];
  const cli = join(root, "dist", "cli", "main.js");
  return run(process.execPath, [cli, ...words, "--faults", faults.join(",")], { quiet: true });
}
