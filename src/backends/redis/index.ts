/** The Redis backend: a fair, pushed and fenced queue per lock on the Redis that is there, one server, Sentinel or Cluster. */
import type { Clock } from "../../core/clock.ts";
import { invalid } from "../../core/errors.ts";
import { RedisBackend, type Settings } from "./backend.ts";
import { checkIoredis, type IoredisClient, IoredisLink, isIoredis } from "./ioredis.ts";
import { isObject } from "./link.ts";
import { checkNodeRedis, isNodeRedis, type NodeRedisClient, NodeRedisLink } from "./node-redis.ts";
import { type Health, healthOf } from "./fitness.ts";
import { linkTo } from "./open.ts";
import { placeOfClient, placeOfUrl } from "./place.ts";
import { readRedisUrl } from "./url.ts";

export { RedisBackend, redisTraits } from "./backend.ts";
export type { IoredisClient } from "./ioredis.ts";
export type { NodeRedisClient } from "./node-redis.ts";

/** An ioredis or node-redis client, told apart by what it can do. */
export type RedisClient = IoredisClient | NodeRedisClient;

/** What is the same for a client that is handed in and for a URL. */
export interface RedisSettings {
  /**
   * What all keys and channels start with. Clients with different prefixes do not meet.
   * @default "holdfast:"
   */
  readonly prefix?: string | undefined;
  /**
   * How long a call may take until its outcome counts as unknown, in milliseconds.
   * @default 3000
   */
  readonly deadlineMs?: number | undefined;
  /**
   * How many replicas must have confirmed an entry before it counts (WAIT). One that is not confirmed in time is taken back.
   * @default 0
   */
  readonly replicas?: number | undefined;
  /**
   * How many servers must have an entry on disk before it counts (WAITAOF, Redis 7.2 or newer): 1 is the primary itself.
   * @default 0
   */
  readonly aof?: number | undefined;
  /**
   * How long the replicas and the disk have for it, in milliseconds.
   * @default 1000
   */
  readonly confirmWithinMs?: number | undefined;
  /**
   * What becomes of a server at `connect` that is not as it should be (it evicts keys, is a replica, keeps nothing…): a warning of the
   * process, a rejection with LOCK_UNSUPPORTED, or nothing.
   * @default "warn"
   */
  readonly health?: Health | undefined;
  /** Where time comes from: for tests. */
  readonly clock?: Clock | undefined;
}

/** Options of redisBackend: a client or a URL, and settings. */
export type RedisOptions = RedisSettings & (HandedIn | ByUrl);

/** Your own client. */
export interface HandedIn {
  /** An ioredis or node-redis client. It stays open when the backend is closed. */
  readonly client: RedisClient;
  readonly url?: undefined;
}

/** A connection of its own. */
export interface ByUrl {
  /**
   * redis://, rediss://, redis+sentinel:// or redis+cluster://. Settings after "?" take precedence. Needs ioredis or redis
   * (node-redis) to be installed.
   */
  readonly url: string;
  readonly client?: undefined;
}

/** Locks on Redis. It connects with the first call, or with `connect`. */
export function redisBackend(options: RedisOptions): RedisBackend {
  if (options.url !== undefined) {
    const address = readRedisUrl(options.url);
    const settings = settingsOf({ ...options, ...settingsIn(address.options) });
    return new RedisBackend(linkTo(address, settings.deadlineMs), settings, placeOfUrl(address));
  }
  const { client } = options;
  if (!isObject(client))
    throw invalid("give an ioredis or node-redis client, or a url", { backend: "redis" });
  const settings = settingsOf(options);
  if (isIoredis(client)) {
    checkIoredis(client);
    return new RedisBackend(new IoredisLink(client, false), settings, placeOfClient(client));
  }
  if (!isNodeRedis(client)) {
    throw invalid("the client is neither one of ioredis nor one of node-redis", { backend: "redis" });
  }
  checkNodeRedis(client);
  return new RedisBackend(new NodeRedisLink(client, false), settings, placeOfClient(client));
}

function settingsIn(options: ReadonlyMap<string, string>): RedisSettings {
  const numbers = ["deadlineMs", "replicas", "aof", "confirmWithinMs"] as const;
  const given = numbers.flatMap((name) => {
    const text = options.get(name);
    return text === undefined ? [] : [[name, Number(text)] as const];
  });
  const [prefix, health] = [options.get("prefix"), options.get("health")];
  return {
    ...Object.fromEntries(given),
    ...(prefix === undefined ? {} : { prefix }),
    ...(health === undefined ? {} : { health: healthOf(health, "redis") }),
  };
}

/** @internal Options with their defaults, checked. */
export function settingsOf(options: RedisSettings): Settings {
  const { prefix = "holdfast:", clock } = options;
  if (typeof prefix !== "string" || prefix.includes("\0"))
    throw invalid("prefix must be a string without NUL");
  const deadlineMs = whole(options.deadlineMs ?? 3_000, "deadlineMs", 1);
  const replicas = whole(options.replicas ?? 0, "replicas", 0);
  const aof = whole(options.aof ?? 0, "aof", 0);
  const withinMs = whole(options.confirmWithinMs ?? 1_000, "confirmWithinMs", 1);
  const confirmation = replicas + aof > 0 ? { replicas, aof, withinMs } : null;
  if (confirmation !== null && withinMs >= deadlineMs)
    throw invalid("confirmWithinMs must be less than deadlineMs");
  const health = healthOf(options.health ?? "warn", "redis");
  return { prefix, deadlineMs, confirmation, health, clock };
}

function whole(value: unknown, option: string, least: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least) return value;
  throw invalid(`${option} must be a whole number from ${least} on`);
}
