/** The calls that scripts/calls.lua knows: their letters, and the keys and arguments that each takes, in order. */
import type { QueueKeys } from "./keys.ts";

/** No arguments. */
type None = { readonly [Key in string]: never };

/** The arguments of each call, by the name of its Lua file. */
export interface CallArgs {
  readonly append: {
    readonly id: string;
    readonly ttlMs: string;
    readonly entry: string;
    readonly atOnce: string;
  };
  readonly remove: { readonly id: string; readonly seq: string };
  readonly evict: { readonly id: string; readonly seq: string };
  readonly renew: { readonly id: string; readonly seq: string; readonly ttlMs: string };
  readonly prune: None;
  readonly list: None;
}

/** What a call takes; test/house/redis-scripts.test.ts compares it with its Lua file. */
interface Shape<Arg> {
  readonly letter: string;
  readonly keys: readonly (keyof QueueKeys)[];
  readonly args: readonly Arg[];
}

/** Each call, by the name of its Lua file. */
export const calls: { readonly [Name in keyof CallArgs]: Shape<keyof CallArgs[Name] & string> } = {
  append: { letter: "a", keys: ["queue", "entries", "order"], args: ["id", "ttlMs", "entry", "atOnce"] },
  remove: { letter: "d", keys: ["queue", "entries", "order"], args: ["id", "seq"] },
  evict: { letter: "e", keys: ["queue", "entries", "order", "evicted"], args: ["id", "seq"] },
  renew: { letter: "r", keys: ["queue", "entries", "order", "evicted"], args: ["id", "seq", "ttlMs"] },
  prune: { letter: "p", keys: ["queue", "entries", "order"], args: [] },
  list: { letter: "l", keys: ["queue", "entries"], args: [] },
};
