/** What scripts/calls.lua answers, read; who gets which answer is left to outbox.ts. */
import { calls as shapes } from "./calls.ts";
import { asText } from "./link.ts";

/** What the script answered. */
export interface Reply {
  /** What it says to each call, from a place on. */
  readonly answers: readonly unknown[];
  readonly from: number;
  /** The server's time in microseconds; 0 if it did not say. */
  readonly nowUs: number;
}

/**
 * Two words of a list are the time; a list of words is one text. A call that travelled alone may be answered alone: an append by its
 * seq, which is the time.
 */
export function readReply(calls: readonly string[], reply: unknown): Reply | null {
  const words = typeof reply === "number" || Array.isArray(reply) ? "" : asText(reply);
  const list: unknown = words.includes(" ") ? words.split(" ") : reply;
  if (Array.isArray(list)) {
    const nowUs = Number(asText(list[0])) * 1_000_000 + Number(asText(list[1]));
    return { answers: list, from: 2, nowUs };
  }
  const [call] = calls;
  if (call === undefined || calls.length > 1 || reply === null || reply === undefined) return null;
  const appends = call.startsWith(shapes.append.letter);
  return { answers: [reply], from: 0, nowUs: appends ? Number(asText(reply)) : 0 };
}

/** What the script says went wrong with one call; null if nothing did. */
export function failureIn(answer: unknown): string | null {
  if (typeof answer === "number" || answer === null || Array.isArray(answer)) return null;
  const text = asText(answer);
  return text.startsWith("!") ? text.slice(1) : null;
}
