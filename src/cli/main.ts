#!/usr/bin/env node
/** The program `holdfast`: hands this process to the CLI and ends it as the CLI says. */
import { constants } from "node:os";
import { runCli } from "./cli.ts";
import { signalBase } from "./exit-codes.ts";

/** Ends this process by a signal, so that whoever started it sees what happened; as the first process of a container, by code. */
function dieBy(signal: NodeJS.Signals): never {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(signalBase + constants.signals[signal]);
}

// Whoever reads our output has gone: end as a program does that SIGPIPE ends.
process.stdout.on("error", () => process.exit(signalBase + constants.signals.SIGPIPE));

// The timers of the library keep no process alive, and a command may wait for nothing else.
const alive = setInterval(() => {}, 2 ** 30);
const outcome = await runCli(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  interactive: process.stdin.isTTY && process.stderr.isTTY,
});
// A write that failed is told a turn later.
await new Promise((resolve) => process.stdout.write("", resolve));
clearInterval(alive);
if (typeof outcome === "number") process.exit(outcome);
dieBy(outcome);
