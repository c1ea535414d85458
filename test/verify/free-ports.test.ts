/** Ports for throwaway servers: nobody is given one that another has, though no server may listen there yet, or just now. */
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { freePorts } from "../../src/verify/servers/server-process.ts";

// Of three lists of so many that are picked by chance, two have a dozen in common.
const many = 300;
const built = new URL("../../dist/verify/servers/server-process.js", import.meta.url).href;

it("no two are given the same, in this process or another, until whoever has it ends", async () => {
  const program = `const { freePorts } = await import(${JSON.stringify(built)});
    console.log(JSON.stringify(await freePorts(${many})));
    process.stdin.resume();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
  const ended = once(child, "exit");
  const [line]: unknown[] = await once(createInterface(child.stdout), "line");
  const theirs: readonly number[] = JSON.parse(String(line));
  const own = [...(await freePorts(many)), ...(await freePorts(many))];
  expect(new Set([...own, ...theirs]).size).toBe(3 * many);
  expect(await isClaimed(theirs[0] ?? 0)).toBe(true);
  child.kill("SIGKILL");
  await ended;
  const left = await Promise.all(theirs.map(isClaimed));
  // Whoever else runs here may have some of them by now.
  expect(left.filter(Boolean).length).toBeLessThan(many / 10);
});

/** Whether somebody has a port, as freePorts sees it. */
function isClaimed(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.on("error", () => socket.close(() => resolve(true)));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => socket.close(() => resolve(false)));
  });
}
