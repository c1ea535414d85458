/** The guard for Redis: one script checks the token and writes; it works with the ioredis or node-redis client that is there. */
import { createHash } from "node:crypto";
import type { RedisClient } from "../backends/redis/index.ts";
import { isScriptMissing, sentFailure } from "../backends/redis/failures.ts";
import { IoredisLink, isIoredis } from "../backends/redis/ioredis.ts";
import { hashTagOf, slotOf } from "../backends/redis/keys.ts";
import { asText, isObject, type Link, property, type Word } from "../backends/redis/link.ts";
import { isNodeRedis, NodeRedisLink, takesCommands } from "../backends/redis/node-redis.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { invalid, LockError } from "../core/errors.ts";
import { type Guard, staleToken } from "./guard.ts";
import { checkScript, setScript } from "./redis/scripts.ts";
import { type Holder, parseToken, tokenOf } from "./token.ts";

/** @internal What the scripts take, in order; compared with their headers by a test. */
export const shapes: {
  readonly check: { readonly keys: readonly string[]; readonly args: readonly string[] };
  readonly set: { readonly keys: readonly string[]; readonly args: readonly string[] };
} = {
  check: { keys: ["fence"], args: ["token", "keepMs"] },
  set: { keys: ["key"], args: ["value", "ttlMs"] },
};

/** Options of redisGuard. */
export interface RedisGuardOptions {
  /** An ioredis or node-redis client, of one server or a cluster, with whatever options. It stays open. */
  readonly client: RedisClient;
  /**
   * What the keys that keep tokens start with. No braces: they are for the hash tag.
   * @default "holdfast:fence:"
   */
  readonly prefix?: string | undefined;
  /**
   * How long a token is kept after it was last shown. A holder that comes later than that is not refused any more.
   * @default Infinity
   */
  readonly keepFor?: Duration | undefined;
}

/** Options of a write. */
export interface RedisWriteOptions {
  /** When the value ends by itself; without one it stays. */
  readonly ttl?: Duration | undefined;
}

/** A script of your own that is run behind the check. */
export interface FencedScript {
  /** Lua, as EVAL takes it. `KEYS[1]` is the guarded key; those of `keys` follow. It may return what a script may. */
  readonly script: string;
  /** More keys that it writes; on a cluster, of the same hash tag. */
  readonly keys?: readonly string[] | undefined;
  /** Its ARGV. */
  readonly args?: readonly (string | Uint8Array)[] | undefined;
}

/** A guard of keys on Redis. */
export function redisGuard(options: RedisGuardOptions): RedisGuard {
  const { client, prefix = "holdfast:fence:", keepFor = Number.POSITIVE_INFINITY } = options;
  if (/[{}]/.test(prefix)) throw invalid("the prefix of a guard has no braces: they are for the hash tag");
  const keepMs = durationMs(keepFor, { option: "keepFor", leastMs: 1, forEver: true });
  return new RedisGuard(linkOf(client), prefix, Number.isFinite(keepMs) ? wholeMs(keepMs) : "");
}

/**
 * Guards keys, each with one more key that keeps the highest token, in the same slot of a cluster. Both are written in one
 * step, so a server that loses one write has lost the other.
 */
export class RedisGuard implements Guard {
  readonly #link: Link;
  readonly #prefix: string;
  readonly #keepMs: string;

  /** @internal Made by redisGuard. */
  constructor(link: Link, prefix: string, keepMs: string) {
    this.#link = link;
    this.#prefix = prefix;
    this.#keepMs = keepMs;
  }

  /** Sets a key as SET does, unless it has seen a newer token: then it rejects with LOCK_STALE_TOKEN. */
  async write(
    key: string,
    holder: Holder,
    value: string | Uint8Array,
    { ttl }: RedisWriteOptions = {},
  ): Promise<void> {
    const ttlMs = ttl === undefined ? "" : wholeMs(durationMs(ttl, { option: "ttl", leastMs: 1 }));
    await this.run(key, holder, { script: setScript, args: [value, ttlMs] });
  }

  /**
   * Runs a script of yours, unless the key has seen a newer token: then it rejects with LOCK_STALE_TOKEN, and the script was
   * not begun. Gives its reply. A script that fails half-way leaves what it has written, as every script on Redis does.
   */
  async run(key: string, holder: Holder, { script, keys = [], args = [] }: FencedScript): Promise<unknown> {
    const { token, lock } = tokenOf(holder);
    const all = [this.#fenceOf(key), key, ...keys];
    if (this.#link.cluster && new Set(all.map(slotOf)).size > 1) {
      throw invalid(`the keys ${keys.join(", ")} are not in the slot of ${key}: give them one hash tag`);
    }
    const words = args.map((word) => (typeof word === "string" ? word : Buffer.from(word)));
    const reply = await this.#eval(behindCheck(script), all, [String(token), this.#keepMs, ...words]);
    const [word, result]: unknown[] = Array.isArray(reply) ? reply : [];
    if (asText(word) === "stale") {
      throw staleToken({ resource: key, token, highest: asText(result), lock, backend: "redis" });
    }
    return result;
  }

  async show(key: string, holder: Holder): Promise<void> {
    await this.run(key, holder, { script: "" });
  }

  async highest(key: string): Promise<bigint | null> {
    const fence = this.#fenceOf(key);
    const reply = await this.#link.send("GET", [fence], fence).catch((error: unknown) => {
      throw failureOf(error);
    });
    return reply === null ? null : parseToken(asText(reply));
  }

  /** The key that keeps the highest token: it has the hash tag of the key, so it is in the same slot. */
  #fenceOf(key: string): string {
    if (key === "") throw invalid("a guarded key must not be empty");
    const tag = hashTagOf(key);
    if (tag.includes("}")) {
      throw invalid(
        `the key ${JSON.stringify(key)} has a "}" without a hash tag: no other key can be in its slot`,
      );
    }
    return tag === key ? `${this.#prefix}{${key}}` : `${this.#prefix}{${tag}}${key}`;
  }

  async #eval(script: string, keys: readonly string[], args: readonly Word[]): Promise<unknown> {
    const [fence = ""] = keys;
    const rest = [String(keys.length), ...keys, ...args];
    const digest = createHash("sha1").update(script).digest("hex");
    try {
      return await this.#link.send("EVALSHA", [digest, ...rest], fence).catch((error: unknown) => {
        if (!isScriptMissing(error)) throw error;
        return this.#link.send("EVAL", [script, ...rest], fence);
      });
    } catch (error) {
      throw failureOf(error);
    }
  }
}

/** A script that is done only if the token is not stale. A word tells its reply from a refusal. */
function behindCheck(script: string): string {
  return `${checkScript}local function work()
${script}
end
local result = work()
if type(result) == 'table' and result.err then return result end
return { 'done', result }
`;
}

function linkOf(client: unknown): Link {
  if (!isObject(client)) throw invalid("give an ioredis or node-redis client", { backend: "redis" });
  for (const path of [["options"], ["options", "redisOptions"], ["_options"], ["_options", "defaults"]]) {
    if (property(client, ...path, "keyPrefix")) {
      throw invalid("this client has a keyPrefix: write it in the keys, so that their slots are known", {
        backend: "redis",
      });
    }
  }
  if (isIoredis(client)) return new IoredisLink(client, false);
  if (isNodeRedis(client) && takesCommands(client)) return new NodeRedisLink(client, false);
  throw invalid(
    "give a client of ioredis, or of node-redis made by createClient or createCluster: others take no scripts one by one",
    { backend: "redis" },
  );
}

function failureOf(cause: unknown): LockError {
  if (cause instanceof Error && cause.message.startsWith("FENCE")) {
    const message = `redis: somebody else uses the keys of the guard, and nothing was written: ${cause.message}`;
    return new LockError("LOCK_UNAVAILABLE", message, { backend: "redis", cause });
  }
  // Whatever else a script fails with comes from the work, which may have written before.
  if (cause instanceof Error && cause.message.startsWith("WRONGTYPE")) {
    const message = `redis: the script failed, and may have written before: ${cause.message}`;
    return new LockError("LOCK_OUTCOME_UNKNOWN", message, { backend: "redis", cause });
  }
  return sentFailure(cause);
}

function wholeMs(ms: number): string {
  return String(Math.ceil(ms));
}
