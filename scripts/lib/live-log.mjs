/** A log that people watch as things happen: time, who, what; in colour where a terminal shows it. What to say is left to callers. */
import { subscribe } from "node:diagnostics_channel";

/** @typedef {import("holdfast").LockEvents} LockEvents */

// As no-color.org has it: any value but the empty one means no colour.
const coloured = process.stdout.isTTY && !process.env["NO_COLOR"];
const startedAt = performance.now();

/** @type {(code: number) => (text: string) => string} */
const style = (code) => (text) => (coloured ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = style(1);
export const dim = style(2);
export const red = style(31);
export const green = style(32);
const yellow = style(33);

/** @type {Readonly<Record<string, (text: string) => string>>} */
const tints = {
  granted: green,
  lost: red,
  refused: red,
  told: red,
  killed: yellow,
  frozen: yellow,
  "wakes up": yellow,
};

export function print(/** @type {string} */ text) {
  console.log(text);
}

export function title(/** @type {string} */ text) {
  print(`\n${bold(text)}`);
}

/** @type {(who: string, what: string, text: string) => void} one line of the log */
export function say(who, what, text) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(2).padStart(5);
  const tint = tints[what] ?? dim;
  print(`${dim(`${seconds} s`)}  ${bold(who.padEnd(2))}  ${tint(what.padEnd(8))}  ${text}`);
}

/**
 * Calls back for each event of one kind that the library publishes.
 *
 * @template {keyof LockEvents} Kind
 * @param {Kind} kind
 * @param {(event: LockEvents[Kind]) => void} tell
 */
export function listen(kind, tell) {
  subscribe(`holdfast:${kind}`, (message, channel) => {
    if (isOf(kind, channel, message)) tell(message);
  });
}

/**
 * The name of the channel says what its messages are.
 *
 * @template {keyof LockEvents} Kind
 * @param {Kind} kind
 * @param {string | symbol} channel
 * @param {unknown} _message
 * @returns {_message is LockEvents[Kind]}
 */
function isOf(kind, channel, _message) {
  return channel === `holdfast:${kind}`;
}
