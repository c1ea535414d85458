/** A ZooKeeper that nobody reaches, asked by the CLI: said in one message, and soon. */
import { createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { CliRig } from "../helpers/cli.ts";

/** An address that nobody serves: just taken, and given back. */
async function nowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return `zookeeper://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

it.each([["ls"], ["verify", "--for", "1s"]])(
  "holdfast %s",
  async (...words) => {
    const rig = new CliRig();
    onTestFinished(() => rig.end());
    const { code, stdout, stderr } = await rig.run([...words, "--store", await nowhere()]);
    expect({ code, stdout }).toEqual({ code: 69, stdout: "" });
    expect(stderr).toMatch(/^holdfast: the store zookeeper:\S+ does not do its work: .*ECONNREFUSED/m);
    expect(stderr).not.toContain("    at ");
  },
  60_000,
);
