/**
 * Renewals of many entries that come back in the same company: the words of such a call are made once, and a link may keep what it
 * makes of them. Who renews what and when is left to renewals.ts.
 */
import { createHash } from "node:crypto";
import type { Renewal } from "../../core/backend.ts";
import { type Call, keepCall, ownOf } from "./calls.ts";
import type { KeyNames } from "./keys.ts";
import type { Kept } from "./link.ts";
import { wholeMs } from "./records.ts";
import { callsScript } from "./scripts.ts";

/** By which the server knows the script. */
export const digest: string = createHash("sha1").update(callsScript).digest("hex");

/** The words of a call that may be sent again. */
export interface Phrase {
  /** Its first key, and the slot of all of them. */
  readonly key: string;
  readonly slot: number;
  readonly ttlMs: number;
  readonly words: readonly string[];
  readonly kept: Kept;
}

interface Known extends Phrase {
  readonly renewals: readonly Renewal[];
}

/** The phrases of one client, each kept for as long as the first entry that it renews. */
export class Phrases {
  readonly #keys: KeyNames;
  readonly #known = new WeakMap<Renewal, Known>();

  constructor(keys: KeyNames) {
    this.#keys = keys;
  }

  /** Renews entries of one slot and one ttl, each of which is taken to be alone in its queue; one at least. */
  of(first: Renewal, renewals: readonly Renewal[]): Phrase {
    const known = this.known(renewals);
    if (known !== null) return known;
    const phrase = this.#make(first, renewals);
    this.#known.set(first, phrase);
    return phrase;
  }

  /** That which renews just these, if there is one. */
  known(renewals: readonly Renewal[]): Phrase | null {
    const [first] = renewals;
    const known = first === undefined ? undefined : this.#known.get(first);
    return known !== undefined && isSame(known.renewals, renewals) ? known : null;
  }

  #make(first: Renewal, renewals: readonly Renewal[]): Known {
    const { queue: key, slot } = this.#keys.of(first.queue);
    const ttlMs = wholeMs(first.ttlMs);
    const { keys, call } = runOf(this.#keys, renewals, ttlMs);
    const words = [digest, String(keys.length)].concat(keys, call.text);
    return { key, slot, ttlMs, words, kept: { bytes: null }, renewals };
  }
}

/** The call that renews entries of one ttl, and the keys that it takes. */
export function runOf(
  names: KeyNames,
  renewals: readonly Renewal[],
  ttlMs: number,
): { readonly keys: readonly string[]; readonly call: Call } {
  const keys = renewals.map(({ queue }) => names.of(queue).queue);
  const owned = renewals.map(({ id, seq }) => ownOf(id, seq)).join("");
  return { keys, call: keepCall(ttlMs, keys.length, owned) };
}

/** The core gives the same renewal again for as long as nothing of it changes. */
function isSame(some: readonly Renewal[], others: readonly Renewal[]): boolean {
  if (some === others) return true;
  return some.length === others.length && some.every((renewal, place) => renewal === others[place]);
}
