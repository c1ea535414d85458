/** The calls that scripts/calls.lua knows: their letters, and the keys and arguments that each takes, in order. */

/** What a call takes; test/house/redis-scripts.test.ts compares it with its Lua file. */
export interface Shape {
  readonly letter: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** The names of the calls: those of their Lua files. */
export type CallName =
  | "acquire"
  | "take"
  | "store"
  | "renew"
  | "repair"
  | "release"
  | "remove"
  | "evict"
  | "look";

/** Each call, by its name. */
export const calls: Readonly<Record<CallName, Shape>> = {
  acquire: { letter: "a", keys: ["lock"], args: ["value", "ttlMs"] },
  take: { letter: "t", keys: ["lock"], args: ["value", "ttlMs"] },
  store: { letter: "s", keys: ["lock"], args: ["id", "token"] },
  renew: { letter: "r", keys: ["lock", "evicted"], args: ["id", "seq", "ttlMs"] },
  repair: { letter: "f", keys: ["lock"], args: ["id", "seq", "ttlMs", "rest", "fenced"] },
  release: { letter: "g", keys: ["lock"], args: ["value"] },
  remove: { letter: "d", keys: ["lock"], args: ["id", "seq", "tell"] },
  evict: { letter: "e", keys: ["lock", "evicted"], args: ["id", "seq"] },
  look: { letter: "l", keys: ["lock"], args: [] },
};
