/** The exit codes of the CLI, all in one table; docs/cli.md has the same for people. Which message has which is in messages.ts. */

/** Each way to end. The numbers from 64 on are those of sysexits.h, 126 and 127 those of the shells. */
export const exitCodes = {
  ok: 0,
  no: 1,
  unknown: 2,
  usage: 64,
  unavailable: 69,
  bug: 70,
  busy: 75,
  lost: 76,
  notExecutable: 126,
  notFound: 127,
} as const;

/** A way to end, by its word. */
export type Exit = keyof typeof exitCodes;

/** What a shell reports for a command that a signal ended: this plus the signal's number. */
export const signalBase = 128;
