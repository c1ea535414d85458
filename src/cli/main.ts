#!/usr/bin/env node
/** The program `holdfast`: hands this process to the CLI and ends it as the CLI says. */
import { constants } from "node:os";
import { isatty } from "node:tty";
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
// A terminal that was closed takes no messages any more; the command may still be ended in order.
process.stderr.on("error", () => {});

// The timers of the library keep no process alive, and a command may wait for nothing else.
const alive = setInterval(() => {}, 2 ** 30);
const outcome = await runCli(process.argv.slice(2), {
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  // Asked of the descriptors: the stream of stdin belongs to the command that is run.
  interactive: isatty(0) && isatty(2),
});
// A write that failed is told a turn later.
await new Promise((resolve) => process.stdout.write("", resolve));
clearInterval(alive);
if (typeof outcome === "number") process.exit(outcome);
dieBy(outcome);
