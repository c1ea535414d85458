/**
 * Every message of the CLI and the exit code that goes with it; docs/cli.md lists the same, and tests produce each. What
 * stands in <> is filled in. Showing them is left to output.ts.
 */
import { type Exit, exitCodes } from "./exit-codes.ts";

interface Template {
  /** How the CLI ends with it; null for a note, after which it goes on. */
  readonly exit: Exit | null;
  readonly text: string;
  /** What to do next. */
  readonly hint?: string;
}

/** All messages by their ids. */
export const messages = {
  "command-unknown": { exit: "usage", text: 'there is no command "<given>"', hint: "<suggestion>" },
  "command-not-given": { exit: "usage", text: "say what to do", hint: "holdfast help lists the commands" },
  "option-unknown": { exit: "usage", text: "there is no option <given> here", hint: "<suggestion>" },
  "option-without-value": {
    exit: "usage",
    text: "<option> needs a value",
    hint: "holdfast <command> --help shows how",
  },
  "option-with-value": {
    exit: "usage",
    text: "<option> takes no value",
    hint: "holdfast <command> --help shows how",
  },
  "argument-missing": { exit: "usage", text: "give <argument>", hint: "usage: <usage>" },
  "argument-unexpected": { exit: "usage", text: 'unexpected argument "<given>"', hint: "usage: <usage>" },
  "options-exclude": { exit: "usage", text: "<one> and <other> exclude each other" },
  "value-refused": {
    exit: "usage",
    text: "not allowed: <reason>",
    hint: "holdfast <command> --help shows how",
  },
  "grace-too-long": {
    exit: "usage",
    text: "--kill-grace <grace> is more than half of <bound>",
    hint: "the command would be ended although its lock is being renewed: give a shorter grace or a longer ttl",
  },
  "force-missing": {
    exit: "usage",
    text: "a release takes the lock away from a holder that does not expect it",
    hint: "add --force if that is what you want; holdfast show <name> says who holds it",
  },
  "yes-missing": {
    exit: "usage",
    text: "nobody can be asked here",
    hint: "add --yes to evict without a question",
  },
  "store-unsupported": {
    exit: "usage",
    text: "the store <store> cannot be used: <reason>",
    hint: "choose another with --store or HOLDFAST_STORE",
  },
  "address-refused": {
    exit: "usage",
    text: "the address of the store is not allowed: <reason>",
    hint: "docs/backends has a page for each store, with its URLs and their options",
  },
  "store-unavailable": {
    exit: "unavailable",
    text: "the store <store> does not do its work: <reason>",
    hint: "does it run, is the address right, may you use it? <next>",
  },
  bug: {
    exit: "bug",
    text: "this should not have happened: <reason>",
    hint: "please report it, with the command that you ran",
  },
  busy: { exit: "busy", text: "busy: <reason>", hint: "holdfast show <name> says who holds it" },
  "ended-in-time": {
    exit: "lost",
    text: "<name> could not be renewed, and the command was ended (<how>) before anybody else could hold it",
    hint: "is the store <store> well? holdfast doctor looks at it",
  },
  lost: {
    exit: "lost",
    text: "<name> was lost, and the command was ended (<how>): <reason>",
    hint: "what it did last may have met another holder: HOLDFAST_TOKEN lets the resource refuse that",
  },
  "lost-late": {
    exit: "lost",
    text: "<name> was lost while the command ran: <reason>",
    hint: "the command ended by itself, and may have met another holder",
  },
  "held-too-long": {
    exit: "lost",
    text: "<name> was held for its --max-hold of <maxHold>, and the command was ended (<how>)",
    hint: "give it more time, or find out why it takes so long",
  },
  "command-not-found": { exit: "notFound", text: "<command>: command not found" },
  "command-not-executable": { exit: "notExecutable", text: "<command>: cannot be run: <reason>" },
  "nobody-holds": { exit: "no", text: "nobody holds <what>" },
  "token-unknown": {
    exit: "no",
    text: "<what> has no entry with the token <token>",
    hint: "it may have left meanwhile; holdfast show <name> says who is there",
  },
  "semaphore-meant": {
    exit: "usage",
    text: "nobody holds lock <name>, but there is a semaphore of that name",
    hint: "add --semaphore if you mean it",
  },
  "not-evicted": { exit: "no", text: "nothing was evicted" },
  "store-problem": { exit: "no", text: "the store <store> has a problem: see above" },
  "verify-invalid": {
    exit: "no",
    text: "<store> did not keep what it promises: <what>",
    hint: "<report> shows how; --seed <seed> brings the same faults again",
  },
  "verify-unknown": {
    exit: "unknown",
    text: "nothing certain can be said about <store>: <reason>",
    hint: "that is not a pass: give it more time, or fewer faults",
  },
  "cluster-unavailable": {
    exit: "unavailable",
    text: "the servers of <cluster> could not be started: <reason>",
    hint: "install them, or give a store of yours with --store",
  },
  "fault-impossible": { exit: null, text: "<fault> cannot be had here: <reason>" },
  "losing-soon": {
    exit: null,
    text: "<name> is about to be lost: <reason>; the command gets SIGTERM now, and SIGKILL in <grace>",
  },
  "left-running": {
    exit: null,
    text: "the command ended and left <count> running in its process group (<pids>): <name> is held until they end",
  },
  "release-unanswered": {
    exit: null,
    text: "the store <store> did not answer the release of <name>: it is free when its ttl of <ttl> is over",
  },
  waiting: { exit: null, text: "waiting for <name>: <holders>" },
  "store-silent": { exit: null, text: "the store <store> does not answer: <reason>; trying again" },
  "store-back": { exit: null, text: "the store <store> answers again" },
} as const;

/** A message, by its id. */
export type MessageId = keyof typeof messages;

/** What is filled in, by the words in <>. */
export type Values = Readonly<Record<string, string>>;

/** A message ready to be shown. */
export interface Message {
  readonly id: MessageId;
  /** The exit code that goes with it; null for a note. */
  readonly exitCode: number | null;
  readonly text: string;
  readonly hint: string | undefined;
}

/** A message with its blanks filled in; a blank that nobody fills is a mistake. */
export function message(id: MessageId, values: Values): Message {
  const template: Template = messages[id];
  return {
    id,
    exitCode: template.exit === null ? null : exitCodes[template.exit],
    text: fill(template.text, values),
    hint: template.hint === undefined ? undefined : fill(template.hint, values),
  };
}

function fill(text: string, values: Values): string {
  return text.replace(/<(\w+)>/g, (_blank, word: string) => {
    const value = values[word];
    if (value === undefined) throw new Error(`a message lacks its <${word}>`);
    return value;
  });
}

/** Ends the CLI with a message. */
export class Failure extends Error {
  readonly shown: Message;

  constructor(id: MessageId, values: Values = {}) {
    const shown = message(id, values);
    super(shown.text);
    this.name = "Failure";
    this.shown = shown;
  }
}
