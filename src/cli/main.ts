#!/usr/bin/env node
/** The program `holdfast`: hands this process to the CLI and ends it as the CLI says. */
import { constants } from "node:os";
import { isatty } from "node:tty";
import { runCli } from "./cli.ts";
import { Descriptors } from "./descriptors.ts";
import { signalBase } from "./exit-codes.ts";

/** Ends this process by a signal, so that whoever started it sees what happened; as the first process of a container, by code. */
function dieBy(signal: NodeJS.Signals): never {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(signalBase + constants.signals[signal]);
}

const descriptors = new Descriptors((descriptor) => {
  // Whoever reads our output has gone: end as a program does that SIGPIPE ends. A terminal that was closed takes no
  // messages any more either, but the command may still be ended in order.
  if (descriptor === 1) process.exit(signalBase + constants.signals.SIGPIPE);
});

// The timers of the library keep no process alive, and a command may wait for nothing else.
const alive = setInterval(() => {}, 2 ** 30);
const outcome = await runCli(process.argv.slice(2), {
  env: process.env,
  // The streams of Node are only asked for the size of a terminal.
  stdout: descriptors.sink(1, isatty(1) ? process.stdout : undefined),
  stderr: descriptors.sink(2, isatty(2) ? process.stderr : undefined),
  // Asked of the descriptors: the stream of stdin belongs to the command that is run.
  interactive: isatty(0) && isatty(2),
});
await descriptors.written();
clearInterval(alive);
if (typeof outcome === "number") process.exit(outcome);
dieBy(outcome);
