/** `holdfast verify` on an etcd of its own at a terminal: Ctrl-C reaches the verifier alone, which ends the rest in order. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { CliRig } from "../helpers/cli.ts";

it("ends soon at Ctrl-C while one of its servers is dead, and leaves nothing", async () => {
  const rig = new CliRig();
  onTestFinished(() => rig.end());
  const temporary = join(rig.folder, "tmp");
  mkdirSync(temporary);
  const words = ["verify", "--cluster", "etcd", "--for", "5m", "--clients", "2", "--ttl", "10s"];
  const running = rig.spawn(
    "script",
    ["-qefc", `exec ${rig.line([...words, "--faults", "server-kill"])}`, "/dev/null"],
    { TERM: "xterm", SHELL: "/bin/sh", TMPDIR: temporary },
  );
  await running.until(/ 1 faults/);
  const typedAt = performance.now();
  running.type("\u0003");
  const { code } = await running.ended;
  expect(code).toBe(130);
  // To bring a member back whose friends are dead would take half a minute, in vain.
  expect(performance.now() - typedAt).toBeLessThan(20_000);
  await running.deserted;
  expect(readdirSync(temporary)).toEqual([]);
}, 120_000);
