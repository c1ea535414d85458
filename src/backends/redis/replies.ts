/** What scripts/calls.lua answers, read; who gets which answer is left to outbox.ts. */
import { calls as shapes } from "./calls.ts";
import { asText } from "./link.ts";
import { numberIn } from "./records.ts";

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
  const number = typeof reply === "number" ? reply : numberIn(asText(reply));
  if (number === null) {
    const list: unknown = Array.isArray(reply) ? reply : asText(reply).split(" ");
    if (!Array.isArray(list) || list.length < 2) return null;
    const nowUs = Number(asText(list[0])) * 1_000_000 + Number(asText(list[1]));
    return { answers: list, from: 2, nowUs };
  }
  const [call] = calls;
  if (call === undefined || calls.length > 1) return null;
  return { answers: [number], from: 0, nowUs: call[0] === shapes.append.letter ? number : 0 };
}

/** What the script says went wrong with one call; null if nothing did. */
export function failureIn(answer: unknown): string | null {
  if (typeof answer === "number" || answer === null || Array.isArray(answer)) return null;
  const text = asText(answer);
  return text.startsWith("!") ? text.slice(1) : null;
}
