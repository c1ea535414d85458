/** Tokens as they travel: a bigint in code, decimal text on the wire, never a number; and the holders that they are taken from. */
import { invalid, LockError } from "../core/errors.ts";
import { heldTogether } from "../core/lock.ts";
import { typeName } from "../core/names.ts";

/** The highest token: what a signed integer of 64 bits holds, so that every guard takes the same. */
export const highestToken: bigint = 2n ** 63n - 1n;

const form = /^(?:0|[1-9]\d{0,18})$/;

/** A token from decimal text: digits alone, no sign, space or leading zero. Anything else is refused with LOCK_INVALID. */
export function parseToken(text: unknown): bigint {
  if (typeof text !== "string") throw invalid(`a token travels as decimal text, not as ${typeName(text)}`);
  if (!form.test(text)) {
    const shown = JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
    throw invalid(`a token is digits without sign, space or leading zero, at most 19 of them: not ${shown}`);
  }
  return checkToken(BigInt(text));
}

/** A token that every guard can keep. */
export function checkToken(token: unknown): bigint {
  if (typeof token !== "bigint") {
    const why = typeof token === "number" ? ": a number loses digits above 2^53" : "";
    throw invalid(`a token is a bigint, not ${typeName(token)}${why}`);
  }
  if (token < 0n || token > highestToken)
    throw invalid(`a token is at most ${highestToken}, and not negative`);
  return token;
}

/** What is used of a Lock: the token, the name for messages, and why the token would be no good. */
export interface Held {
  readonly token: bigint;
  readonly name?: string | undefined;
  readonly mode?: "exclusive" | "shared" | undefined;
  /** Why a resource must not compare its token with others; null or missing if it may. */
  readonly unfenced?: string | null | undefined;
}

/** Who wants to write: a Lock, a sequencer, or a token alone, for which the caller answers. */
export type Holder = bigint | Held;

/** The token of a holder, and the name of its lock. Refuses, with LOCK_UNSUPPORTED and the reason, one that cannot be fenced. */
export function tokenOf(holder: Holder): { readonly token: bigint; readonly lock?: string } {
  if (typeof holder !== "object" || holder === null) return { token: checkToken(holder) };
  const { name, mode, unfenced } = holder;
  const lock = typeof name === "string" ? name : undefined;
  // A lock that has no token throws when it is asked for: the reason comes first.
  const reason = unfenced ?? (mode === "shared" ? heldTogether : null);
  const token = reason === null ? holder.token : null;
  const why = reason ?? (token === undefined || token === null ? "it has no token" : null);
  if (why !== null) {
    const message = `lock ${JSON.stringify(lock ?? "?")} cannot be fenced: ${why}; write under an exclusive lock of a store with tokens`;
    throw new LockError("LOCK_UNSUPPORTED", message, { lock });
  }
  return lock === undefined ? { token: checkToken(token) } : { token: checkToken(token), lock };
}
