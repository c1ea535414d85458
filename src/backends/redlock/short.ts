/** Shorter forms of calls that travel alone: what most calls are when a client has little to do, for less work on both sides. */
import { createHash } from "node:crypto";
import { asText, type Link } from "../redis/link.ts";
import { counterKey } from "./keys.ts";
import { acquireScript, releaseScript, storeScript } from "./scripts.ts";

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
export const shortScripts: readonly string[] = [acquireScript, storeScript, releaseScript];

const [acquireDigest, storeDigest, releaseDigest] = shortScripts.map((script) =>
  createHash("sha1").update(script).digest("hex"),
);

/** Takes a lock with a token, if that is not too low. */
export function takeFenced(key: string, id: string, ttlMs: number, seq: bigint, rest: string): Short {
  const words = [acquireDigest ?? "", "2", counterKey, key, id, String(ttlMs), String(seq), rest];
  return { command: "EVALSHA", words, read: null };
}

/** Takes a lock without a token: the plain command. Only who does not get it asks how long it is taken for. */
export function takePlain(key: string, id: string, ttlMs: number, seq: bigint, rest: string): Short {
  return {
    command: "SET",
    words: [key, `${id}\0t${seq}\0${rest}`, "NX", "GET", "PX", String(ttlMs)],
    read: (reply, link) => {
      if (reply === null) return "+";
      return link.send("PTTL", [key]).then((pttl) => taken(asText(reply), id, asText(pttl)));
    },
  };
}

/** What acquire.lua says of a lock that is taken. */
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
export function releaseValue(key: string, id: string, seq: string, rest: string): Short {
  const words = [releaseDigest ?? "", "1", key, `${id}\0t${seq}\0${rest}`, id];
  return { command: "EVALSHA", words, read: (reply) => (asText(reply) === "1" ? "1" : null) };
}
