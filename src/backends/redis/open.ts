/** Makes connections of our own from a URL, with the library that is installed. */
import { createRequire } from "node:module";
import { invalid, LockError } from "../../core/errors.ts";
import { IoredisLink, isIoredis, ownIoredisClusterOptions, ownIoredisOptions } from "./ioredis.ts";
import { isFunction, isObject, type Link, property } from "./link.ts";
import { isNodeRedis, type NodeRedisClient, NodeRedisLink, ownNodeRedisOptions } from "./node-redis.ts";
import { SentinelLink } from "./sentinel.ts";
import type { RedisAddress } from "./url.ts";

const load = createRequire(import.meta.url);

/** How long each of several servers has to answer, so that all of them can be asked within a deadline, and one more. */
function shareOf(deadlineMs: number, servers: number): number {
  return Math.ceil(deadlineMs / (servers + 1));
}

/** How long to wait before connecting once more, by the number of attempts: whoever asks when the server is back has time for it. */
function retryDelay(deadlineMs: number): (attempt: number) => number {
  return (attempt) => Math.min(25 * 2 ** Math.min(attempt, 6), 1_000, deadlineMs / 4);
}

/** Which libraries stand for which, in the order in which they are looked for. */
const libraries = [
  { client: "ioredis", modules: ["ioredis"], link: ioredis },
  { client: "redis", modules: ["redis", "@redis/client"], link: nodeRedis },
];

/** A connection to what a URL names; nothing is sent yet. */
export function linkTo(address: RedisAddress, deadlineMs: number): Link {
  const wanted = address.options.get("client");
  const allowed = libraries.filter(({ client }) => wanted === undefined || wanted === client);
  if (allowed.length === 0) {
    throw invalid('the option client of a URL is "ioredis" or "redis"', { backend: "redis" });
  }
  for (const { modules, link } of allowed) {
    for (const name of modules) {
      const module = loadIfThere(name);
      if (module !== null) return link(module, address, deadlineMs);
    }
  }
  throw new LockError(
    "LOCK_UNSUPPORTED",
    `redis: install ${wanted ?? "ioredis or redis"} to connect by URL`,
    {
      backend: "redis",
    },
  );
}

function loadIfThere(name: string): object | null {
  try {
    const module: unknown = load(name);
    return isObject(module) || isFunction(module) ? module : null;
  } catch (error) {
    if (property(error, "code") === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

function ioredis(module: object, address: RedisAddress, deadlineMs: number): Link {
  const { kind, hosts, username, password, db, primary, tls, options } = address;
  const secure = tls === null ? {} : { tls };
  const retryStrategy = retryDelay(deadlineMs);
  const login = { username, password, ...secure, connectTimeout: deadlineMs, retryStrategy };
  let client: unknown;
  if (kind === "cluster") {
    const redisOptions = { ...ownIoredisOptions, ...login };
    const slotsRefreshTimeout = shareOf(deadlineMs, hosts.length);
    const again = { clusterRetryStrategy: retryStrategy, slotsRefreshTimeout };
    const own = { ...ownIoredisClusterOptions, ...again, redisOptions };
    client = construct(module, "Cluster", [[...hosts], own]);
  } else {
    const where =
      kind === "server"
        ? hosts[0]
        : {
            sentinels: [...hosts],
            name: primary,
            connectTimeout: shareOf(deadlineMs, hosts.length),
            sentinelCommandTimeout: shareOf(deadlineMs, hosts.length),
            sentinelUsername: options.get("sentinelUsername"),
            sentinelPassword: options.get("sentinelPassword"),
            enableTLSForSentinelMode: tls !== null,
            ...(tls === null ? {} : { sentinelTLS: tls }),
          };
    client = construct(module, "Redis", [{ ...ownIoredisOptions, ...login, ...where, db }]);
  }
  if (!isObject(client) || !isIoredis(client)) throw invalid("this version of ioredis is not known");
  return new IoredisLink(client, true);
}

function nodeRedis(module: object, address: RedisAddress, deadlineMs: number): Link {
  const { kind, hosts, username, password, db, primary, tls, options } = address;
  const secure = tls === null ? {} : { tls: true, ...tls };
  const socket = { reconnectStrategy: retryDelay(deadlineMs), connectTimeout: deadlineMs, ...secure };
  const own = { ...ownNodeRedisOptions, socket, ...given({ username, password }) };
  let client: unknown;
  if (kind === "server") {
    client = call(module, "createClient", { ...own, socket: { ...socket, ...hosts[0] }, database: db });
  } else if (kind === "sentinel") {
    const login = given({
      username: options.get("sentinelUsername"),
      password: options.get("sentinelPassword"),
    });
    const once = { ...socket, reconnectStrategy: false };
    const open = (more: object): NodeRedisClient => {
      const made = call(module, "createClient", more);
      if (!isObject(made) || !isNodeRedis(made)) throw invalid("this version of node-redis is not known");
      return made;
    };
    return new SentinelLink(
      hosts.map((host) => () => open({ ...login, socket: { ...once, ...host } })),
      primary,
      (host) => open({ ...own, socket: { ...once, ...host }, database: db }),
      shareOf(deadlineMs, hosts.length),
    );
  } else {
    // Of these one is asked who has which slot, then the next: one that stands still is given up.
    const socketTimeout = shareOf(deadlineMs, hosts.length);
    const rootNodes = hosts.map((host) => ({ socket: { ...host, socketTimeout } }));
    // Each node is connected when it is needed: otherwise all would wait for one that stands still.
    client = call(module, "createCluster", { rootNodes, defaults: own, minimizeConnections: true });
  }
  if (!isObject(client) || !isNodeRedis(client)) throw invalid("this version of node-redis is not known");
  return new NodeRedisLink(client, true);
}

function construct(module: object, name: string, args: readonly unknown[]): unknown {
  const constructor = property(module, name);
  return isFunction(constructor) ? Reflect.construct(constructor, args) : undefined;
}

function call(module: object, name: string, options: object): unknown {
  const factory = property(module, name);
  return isFunction(factory) ? Reflect.apply(factory, module, [options]) : undefined;
}

function given(options: Readonly<Record<string, string | undefined>>): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
