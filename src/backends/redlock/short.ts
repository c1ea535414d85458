/** Shorter forms of calls that travel alone: what most calls are when a client has little to do, for less work on both sides. */
import { createHash } from "node:crypto";
import { asText, type Link } from "../redis/link.ts";
import { counterKey } from "./keys.ts";
import { acquireScript, freeScript, storeScript } from "./scripts.ts";

/** A call in another form. */
export interface Short {
  readonly command: string;
  readonly words: readonly string[];
  /**
   * The answer that the call would have; null if it has to be asked for in its own form. Without this function, the reply is
   * that of a batch.
   */
  readonly read: ((reply: unknown, link: Link) => string | null | Promise<string>) | null;
}

/** The scripts that short forms need; loaded when a node is let in. */
export const shortScripts: readonly string[] = [acquireScript, storeScript, freeScript];

const [acquireDigest, storeDigest, freeDigest] = shortScripts.map((script) =>
  createHash("sha1").update(script).digest("hex"),
);

/** Takes a lock with a token, if that is not too low. */
export function takeFenced(key: string, value: string, ttlMs: string): Short {
  return { command: "EVALSHA", words: [acquireDigest ?? "", "2", counterKey, key, value, ttlMs], read: null };
}

/** Takes a lock without a token: the plain command. Only who does not get it asks how long it is taken for. */
export function takePlain(key: string, id: string, value: string, ttlMs: string): Short {
  return {
    command: "SET",
    words: [key, value, "NX", "GET", "PX", ttlMs],
    read: (reply, link) => {
      if (reply === null) return "+";
      return link.send("PTTL", [key]).then((pttl) => taken(asText(reply), id, asText(pttl)));
    },
  };
}

/** What the scripts say of a lock that is taken. */
function taken(value: string, id: string, pttl: string): string {
  const [, owner, state] = /^([^\0]*)\0([ct]\d+)\0/.exec(value) ?? [];
  return owner === id && state !== undefined ? `=${state} ${pttl}` : `-${pttl} ${value}`;
}

/** Gives a lock its token. */
export function storeToken(key: string, id: string, token: bigint): Short {
  return {
    command: "EVALSHA",
    words: [storeDigest ?? "", "2", counterKey, key, id, String(token)],
    read: asText,
  };
}

/** Releases a lock that should have this value. */
export function releaseValue(key: string, id: string, value: string): Short {
  return { command: "EVALSHA", words: [freeDigest ?? "", "1", key, value, id], read: readFreed };
}

function readFreed(reply: unknown): string | null {
  return reply === 1 || asText(reply) === "1" ? "+" : null;
}
